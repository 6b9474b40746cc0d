"""The bench runs, and its plain loop, which shares no shortcut with the metrics, comes to the same scores."""

import json
from dataclasses import replace

import numpy as np
import pytest

from operators.base import apply
from operators.metrics.chain_coverage import SLOT_MARK
from operators.prompts import Prompt
from tests.bench import generation, scaling
from tests.bench.naive import PLAIN
from tests.bench.rows import GROUP, by_row, sample_rows
from tests.bench.throughput import METRICS, Timing, main, offline_scorers, one_slot, summary

ROWS = 6
SHORT_PROMPT = f"### user\nHow much does this say, from 0.0 to 1.0?\n{SLOT_MARK}\n"


@pytest.fixture(scope="module")
def rows():
    return sample_rows(ROWS)


@pytest.mark.weights
@pytest.mark.parametrize("metric", METRICS)
def test_a_plain_loop_gives_the_scores_of_the_batched_metric(metric, rows, tmp_path):
    spec = offline_scorers([metric])[metric]
    if metric == "m3":  # the loop reads its prompt 33 times a row: a short one and few rows test the same
        rows = {name: column[:GROUP] for name, column in rows.items()}
        (tmp_path / "short.txt").write_text(SHORT_PROMPT, encoding="utf-8")
        spec = replace(spec, prompt=Prompt(str(tmp_path / "short.txt")))
    if metric == "m4":  # the raw difference saturates with this LM: 0, 0.5 and 1 would hide what differs
        spec = replace(spec, form="log_ratio")
    scores = apply(spec, spec.build(), rows)[spec.writes[0]]
    plain = PLAIN[metric](spec)
    looped = [plain(row) for row in by_row(rows)]
    assert len(set(np.round(scores, 6))) >= len(scores) / 2, "rows that differ have scores that differ"
    np.testing.assert_allclose(scores, looped, atol=1e-4)


@pytest.mark.weights
def test_the_bench_prints_ratios_and_writes_what_it_measured(tmp_path, capsys):
    main(["--rows", "4", "--metrics", "m2,m6", "--repeats", "1", "--json", str(tmp_path / "bench.json")])
    found = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))
    assert {"m2", "m6", "stage"} <= set(capsys.readouterr().out.split())
    for name in ("m2", "m6"):
        timing, result = found["timings"][name], found["summary"][name]
        assert timing["rows"] == 4 and 3 <= timing["loop_rows"] <= 4
        assert timing["largest_difference"] < 1e-4
        ratio = (timing["loop"][0] / timing["loop_rows"]) / (timing["metric"][0] / 4)
        assert result["times_loop"] == pytest.approx(ratio)


@pytest.mark.weights
def test_the_memories_of_clips_spare_decoding_and_encoding_and_change_no_answer():
    ways = generation.measure(items=1, n_trials=2, seconds=0.5, repeats=1)
    assert [way.rows for way in ways] == [2, 2, 2]
    once, twice = generation.CLIPS, 2 * generation.CLIPS
    assert [(way.decoded, way.encoded) for way in ways] == [(twice, twice), (once, twice), (once, once)]
    plain, decoded, encoded = (way.responses for way in ways)
    assert plain == decoded == encoded and None not in plain


def test_rows_come_from_all_response_sets_with_every_column_a_metric_reads():
    batch = sample_rows(2 * GROUP)
    reads = {name for spec in offline_scorers(METRICS).values() for name in spec.reads}
    assert reads <= set(batch)
    uris = [row["audio_uris"][0] for row in by_row(batch)]
    assert len(uris) == 2 * GROUP and len(set(uris)) == 2, "the answers to one question stand side by side"
    assert all(row["audio_hashes"][0] and row["gold_answer"] in row["choices"] for row in by_row(batch))


def test_an_unknown_metric_is_named_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["--metrics", "m2,m9"])
    assert "m9; there are m1, m2, m3" in capsys.readouterr().err


def test_a_loop_that_takes_too_long_is_timed_on_one_slot():
    row = {"perception": "a", "analysis": "ccc", "reasoning": "bb", "answer": "d"}
    assert one_slot(row) == ({"perception": "", "analysis": "", "reasoning": "bb", "answer": "d"}, 3)
    assert one_slot({**row, "reasoning": " ", "analysis": ""})[1] == 1
    assert one_slot({**row, "perception": "", "reasoning": "", "analysis": ""})[1] == 1


def test_the_stage_comes_with_and_without_the_loop_that_ran_in_part():
    whole = Timing(rows=2, loop_rows=1, metric=[4.0], loop=[6.0], bare={"a": [2.0]})
    part = Timing(rows=2, loop_rows=1, loop_in_part=True, metric=[6.0], loop=[54.0], bare={"a": [4.0]})
    found = summary({"m2": whole, "m3": part})
    # Per row: the loop takes 6 and 54 seconds, the metric 4 / 2 = 2 and 6 / 2 = 3: 60 / 5 = 12, and 6 / 2 = 3.
    assert found["stage"]["times_loop"] == pytest.approx(12)
    assert found["stage without m3"]["times_loop"] == pytest.approx(3)
    assert "stage without m3" not in summary({"m2": whole})


@pytest.mark.weights
@pytest.mark.parametrize("faults", [[], ["--faults"]])
def test_the_bench_of_the_api_loses_and_doubles_nothing(faults, tmp_path, capsys):
    pytest.importorskip("openai", reason="the client is the optional package openai")
    from tests.bench.api import main as bench_api

    options = ["--requests", "21", "--seconds", "0.01", "--concurrency", "1,8", *faults]
    rows = bench_api([*options, "--json", str(tmp_path / "r.json")])
    assert [(row.lost, row.doubled) for row in rows] == [(0, 0), (0, 0)]
    # Numbers 0, 7 and 14 fail once each.
    assert {row.sent for row in rows} == {24 if faults else 21}
    assert rows[0].most_in_flight == 1 < rows[1].most_in_flight <= 8
    assert len(json.loads((tmp_path / "r.json").read_text())) == 2
    assert "x one" in capsys.readouterr().out


@pytest.mark.weights
def test_a_second_worker_is_measured_with_what_workers_store(capsys):
    """The sample's rows by one worker and by two, each into an empty store; one that its worker did not store ends the bench."""
    turns = scaling.main(["--metric", "m6", "--copies", "1", "--repeats", "1"])
    assert [(turn.actors, turn.rows) for turn in turns] == [(1, 80), (2, 80)], (
        "of 93 rows 13 are equal to others"
    )
    assert "m6, 2 actors to 1:" in capsys.readouterr().out
