"""The offline scorers on the whole pipeline: real weights, real audio, real model outputs."""

import csv
import json
from itertools import pairwise, product

import numpy as np
import pyarrow.parquet as pq
import pytest

from operators.metrics.audio_lexical_density import content_words, word_list
from operators.schema import METRICS
from tests.bench.throughput import offline_scorers
from tests.pipelines.cli import evaluated
from tests.pipelines.test_aria_eval import record, results, write_lines
from tests.shared_data import shared

pytestmark = [pytest.mark.weights, pytest.mark.usefixtures("ray_session")]


@pytest.fixture(scope="module")
def sample_run(tmp_path_factory):
    """The default run: the embedded cascade beside the three yardsticks, on four items of the sample."""
    folder = tmp_path_factory.mktemp("sample")
    return folder, evaluated(folder, "benchmark.limit=4")


def means(folder, measure="aria"):
    summary = pq.read_table(folder / "run" / "summary.parquet").to_pylist()
    return {row["model"]: row[f"{measure}_mean"] for row in summary if row["group_kind"] == "overall"}


def test_the_yardsticks_rank_as_they_were_written(sample_run):
    folder, done = sample_run
    assert done.returncode == 0, done.stderr
    aria = means(folder)
    assert aria["careful"] > aria["scaffolding"] > aria["decoration"]


def test_every_row_has_every_metric_within_its_range(sample_run):
    folder, _ = sample_run
    table = results(folder)
    assert table.num_rows == 4 * 4 and set(table["model"].to_pylist()) >= {
        "careful",
        "scaffolding",
        "decoration",
    }
    for metric in (*METRICS, "aria"):
        values = table[metric].to_numpy()
        assert np.isfinite(values).all() and (values >= 0).all() and (values <= 1).all()


def test_the_embedded_model_answers_in_four_slots_with_choices(sample_run):
    folder, _ = sample_run
    rows = [row for row in results(folder).to_pylist() if row["model"] == "model"]
    assert len(rows) == 4
    for row in rows:
        assert row["response_error"] is None and row["answer_index"] is not None
        assert all(row[slot] for slot in ("perception", "analysis", "reasoning", "answer"))


@pytest.fixture(scope="module")
def many_workers_run(tmp_path_factory):
    """The same responses without the cascade, in blocks of three rows, two workers to every metric."""
    folder = tmp_path_factory.mktemp("apart")
    apart = [
        f"cluster.m{n}.{field}" for n in range(1, 7) for field in ("batch_size=3", "cpus=0.25", "actors=2")
    ]
    pools = [
        f"cluster.m{n}.pool={'text' if n in (2, 5, 6) else 'lm' if n in (3, 4) else 'null'}"
        for n in range(1, 7)
    ]
    again = ["model=recorded", f"model.path={_careful()}", "model.name=again"]
    return folder, evaluated(folder, "benchmark.limit=4", *again, *apart, *pools)


def test_scores_depend_neither_on_batches_nor_on_the_number_of_actors(sample_run, many_workers_run):
    folder, done = many_workers_run
    assert done.returncode == 0, done.stderr
    rows = results(sample_run[0]).to_pylist()
    before = {(row["model"], row["item_id"]): row for row in rows}
    before |= {("again", item): row for (model, item), row in before.items() if model == "careful"}
    found = results(folder).to_pylist()
    assert len(found) == 4 * 4
    for row in found:
        for metric in METRICS:
            name = (row["model"], row["item_id"])
            assert row[metric] == pytest.approx(before[name][metric], abs=1e-4), (name, metric)


@pytest.mark.parametrize("run", ["sample_run", "many_workers_run"])
def test_each_distinct_clip_text_pair_and_word_is_encoded_once(run, request):
    folder, _ = request.getfixturevalue(run)
    encoded = {name: stage["encoded"] for name, stage in record(folder)["stages"].items()}
    assert {name: encoded[name] for name in ("m1", "m2", "m3", "m4", "m5", "m6")} == _distinct(folder)


def _distinct(folder):
    """How many different things a run's metrics have to encode, counted from its table."""
    rows = results(folder).to_pylist()
    slots = [[row[slot] for slot in ("perception", "analysis", "reasoning", "answer")] for row in rows]
    present = {text.strip() for row in slots for text in row[:3] if text.strip()}
    m5, m6 = (specs := offline_scorers(["m5", "m6"]))["m5"], specs["m6"]
    pieces = [[m5._pieces(text)[0] for text in row] for row in slots]
    pairs = {pair for row in pieces for one, other in pairwise(row) for pair in product(one, other)}
    stop_words = {*word_list(m6.stop_words), *word_list(m6.extra_stop_words)}
    heard = [row for row in rows if row["entities"]]
    return {
        "m1": {
            "clips": len({key for row in heard for key in row["audio_hashes"]}),
            "entities": len({entity for row in heard for entity in row["entities"]}),
        },
        "m2": {"texts": len(present)},
        "m3": {"texts": len(present)},
        "m4": {
            "chains": len(
                {(*row[:3], r["choices"][r["gold_index"]]) for row, r in zip(slots, rows, strict=True)}
            )
        },
        "m5": {"pairs": len(pairs)},
        "m6": {
            "words": len(
                {w for row in slots for w in content_words("\n".join(row), stop_words, m6.min_length)[0]}
            )
        },
    }


def _careful():
    from operators.benchmarks.sample import Sample

    return Sample().yardsticks()["careful"]


def test_nine_hundred_real_outputs_of_six_systems(tmp_path):
    outputs = shared("real_outputs") / "mmau_mini.jsonl"
    model = ["model=recorded", f"model.path={outputs}"]
    benchmark = ["benchmark=manifest", f"benchmark.path={outputs}", "benchmark.require_audio=false"]
    done = evaluated(tmp_path, *benchmark, *model)
    assert done.returncode == 0, done.stderr
    table = results(tmp_path)
    said = table.filter(table["response"].is_valid())
    assert said.num_rows == 900 and len(set(said["model"].to_pylist())) == 6
    reasons = {reason.split(":")[0] for reason in said[f"{METRICS[0]}_reason"].drop_null().to_pylist()}
    assert reasons <= {"no_audio", "duplicate_choices"}, "M1 has no clip to hear, and says so"
    usable = said.filter(said["row_error"].is_null())
    assert all(usable[metric].null_count == 0 for metric in METRICS[1:5])
    unknown = usable.filter(usable[METRICS[5]].is_null())
    assert unknown.num_rows <= 5, "hardly a response is without a known word"
    assert set(unknown[f"{METRICS[5]}_reason"].to_pylist()) <= {"no_word_in_vocabulary"}
    assert record(tmp_path)["recorded"]["model"]["n_unknown_ids"] == 0


def test_real_clips_with_chains_that_name_them_rightly_and_wrongly(tmp_path):
    folder = shared("esc10")
    labels = sorted(_labels(folder).items())[::25]
    classes = sorted(set(_labels(folder).values()))
    rows, responses = [], []
    for number, (file, label) in enumerate(labels):
        others = [name for name in classes if name != label][:3]
        row = {"id": file, "question": "What is heard?", "choices": [*others, label], "answer": label}
        rows.append({**row, "audio": str(folder / file)})
        for model, heard in (("right", label), ("wrong", others[number % 3])):
            chain = f"[PERCEPTION] Entities: {heard} [ANALYSIS] It is {heard}. [REASONING] So {heard}. [ANSWER] {label}"
            responses.append({"id": file, "model": model, "response": chain})
    write_lines(tmp_path / "q.jsonl", rows)
    write_lines(tmp_path / "r.jsonl", responses)
    benchmark = [
        "benchmark=manifest",
        f"benchmark.path={tmp_path / 'q.jsonl'}",
        f"benchmark.audio_root={folder}",
    ]
    done = evaluated(tmp_path, *benchmark, "model=recorded", f"model.path={tmp_path / 'r.jsonl'}")
    assert done.returncode == 0, done.stderr
    grounding = means(tmp_path, METRICS[0])
    assert grounding["right"] > grounding["wrong"] + 0.3
    details = [json.loads(text) for text in results(tmp_path)[f"{METRICS[0]}_details"].to_pylist()]
    assert all(len(detail["entities"]) == len(detail["similarities"]) == 1 for detail in details)


def _labels(folder):
    with (folder / "labels.csv").open() as stream:
        return {row["file"]: row["label"] for row in csv.DictReader(stream)}
