"""A MUGEN run on a real Ray with a listener that really decodes its clips, and the same run read again as recorded."""

import contextlib
import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
import soundfile
from hydra import compose, initialize_config_dir

from operators.mugen.presentation import GenerationSet
from operators.store import Store
from operators.tables import TableError
from pipelines.config import CONF, ConfigError
from pipelines.mugen_eval import evaluate
from pipelines.mugen_plan import warn_of_greedy_votes
from pipelines.rescore import rescore
from tests.mugen_toys import Loudest, tones
from tests.pipelines.cli import ROOT, TOY_PATH, composed

# Whole runs on Ray: more time than the fast part has.
pytestmark = [pytest.mark.weights, pytest.mark.usefixtures("ray_session")]

ALL = "strategy=[direct,cot,sc,apsc,sc_cot,apsc_cot]"


def build(folder, n=5, change=None):
    """`n` items of five tones, the right (loudest) one at position i % 5; odd items have a reference as well."""
    rows = []
    for i in range(n):
        levels = [0.1 + 0.02 * k for k in range(5)]
        levels[i % 5] = 0.9
        reference = tones(folder, [0.95], f"reference{i}") if i % 2 else []
        row = {
            "id": f"q{i}",
            "question": "Select the loudest audio.",
            "candidates": tones(folder, levels, f"clip{i}"),
        }
        row |= {"answer_index": i % 5, "reference": reference, "ranking": False, "task": f"loudest {i % 2}"}
        rows.append(row | {"dimension": ("Temporal Awareness", "Music Analysis")[i % 2]})
    for row in rows:
        (change or {}).get(row["id"], lambda row: None)(row)
    path = folder / "m.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(folder, *overrides, model="loudest", out="run"):
    """One run in this process; what it printed and its return code."""
    where = [
        TOY_PATH,
        "benchmark=mugen",
        f"benchmark.path={folder / 'm.jsonl'}",
        f"store.root={folder / 'store'}",
    ]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("mugen_eval", overrides=[*where, f"model={model}", "n_resamples=200", *overrides])
    printed, told, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        try:
            evaluate(config, folder / out, model)
        except SystemExit as end:
            code, _ = 1, print(end.code, file=told)
    return SimpleNamespace(code=code, out=printed.getvalue(), err=told.getvalue(), folder=folder / out)


def table(done, name):
    return pq.read_table(done.folder / f"{name}.parquet").to_pylist()


def record(done):
    return json.loads((done.folder / "run.json").read_text())


def overall(done):
    return {row["strategy"]: row for row in table(done, "summary") if row["group_kind"] == "overall"}


@pytest.fixture(scope="module")
def six_strategies(tmp_path_factory):
    """A listener that hears the right clip in the first two positions only, under all six strategies."""
    folder = tmp_path_factory.mktemp("six")
    build(folder)
    return folder, run(folder, ALL, "model.reach=2")


def test_gains_are_those_computed_by_hand(six_strategies):
    _, done = six_strategies
    assert done.code == 0, done.err
    found = overall(done)
    # Gold at every position once: 2 of 5 right in the original order; all 5 by APSC (4 fair votes against at most 2).
    expected = {"direct": 0.4, "cot": 0.4, "sc": 0.4, "sc_cot": 0.4, "apsc": 1.0, "apsc_cot": 1.0}
    assert {name: row["accuracy"] for name, row in found.items()} == expected
    assert found["apsc"]["gain"] == pytest.approx(0.6) and found["apsc"]["generations"] == 50
    for words in ("APSC+CoT", "+60.00", "chosen position", "chi-square", "% right by trials"):
        assert words in done.out


def test_a_night_takes_the_same_votes_from_the_store(six_strategies):
    folder, done = six_strategies
    config = composed(
        TOY_PATH,
        "scorers=toy",
        f"store.root={folder / 'store'}",
        f"out={folder / 'night'}",
        pipeline="rescore",
    )
    with pytest.raises(SystemExit) as ended:
        rescore(config, "toy")
    assert ended.value.code == 0
    rows = pq.read_table(folder / "night" / "rows.parquet").to_pylist()
    cast = {(row["benchmark"], row["item_id"]): (row["answer_index"], row["correct"]) for row in rows}
    expected = {
        (f"m ({row['strategy']})", row["item_id"]): (row["choice_index"], row["correct"])
        for row in table(done, "votes")
    }
    assert cast == expected and len(cast) == 6 * 5
    votes = json.loads((folder / "night" / "run.json").read_text())["votes"]
    assert votes["trials_read"] == 5 * (1 + 10 + 10) * 2, (
        "a trial is read once for each strategy that draws on it"
    )


def test_strategies_share_generations_and_clips_are_worked_on_once(six_strategies):
    _, done = six_strategies
    audio = record(done)["audio"]
    # 5 items x 5 candidates and 2 references: 27 clips. Four sets of 10 trials: (5 * 5 + 2) * 40 presentations.
    assert audio["encoder_calls"] == 27
    assert audio["clips_decoded"] == 2 * 27, "once to be hashed, once to be heard"
    assert audio["clips_presented"] == 27 * 40 and audio["cache_hits"] == 27 * 40 - 27
    assert record(done)["stages"]["generate"]["rows"] == 5 * 10 * 4, (
        "direct and cot cost nothing of their own"
    )


def test_an_item_with_six_clips_reaches_the_model_with_six_clips(six_strategies):
    _, done = six_strategies
    for row in table(done, "trials"):
        assert json.loads(row["usage"])["clips"] == 5 + row["n_reference"]
    assert record(done)["audio"]["clips_per_prompt"] == {"5": 120, "6": 80}


def test_a_second_run_generates_nothing(six_strategies):
    folder, done = six_strategies
    again = run(folder, "strategy=[apsc,direct]", "model.reach=2", out="again")
    assert record(again)["audio"]["generations_computed"] == 0
    assert record(again)["audio"]["generations_from_store"] == 5 + 50
    assert record(again)["audio"]["encoder_calls"] == 0 and record(again)["audio"]["clips_decoded"] == 27
    wanted = {
        row["item_id"]: row["choice_index"] for row in table(done, "votes") if row["strategy"] == "apsc"
    }
    assert {
        r["item_id"]: r["choice_index"] for r in table(again, "votes") if r["strategy"] == "apsc"
    } == wanted


def test_its_trials_read_as_recorded_give_the_same_votes(six_strategies):
    folder, done = six_strategies
    recorded = run(
        folder, ALL, f"model.path={done.folder / 'trials.parquet'}", model="recorded", out="recorded"
    )
    assert recorded.code == 0, recorded.err
    order = [("strategy", "ascending"), ("item_id", "ascending")]
    first, second = (pq.read_table(d.folder / "votes.parquet").sort_by(order) for d in (done, recorded))
    assert first.equals(second)
    assert record(recorded)["audio"]["clips_decoded"] == 27, (
        "hashed, as far as they are at hand; never encoded"
    )
    assert record(recorded)["audio"]["encoder_calls"] == 0


def test_scaling_leaves_ranking_tasks_out(tmp_path):
    build(tmp_path, n=6, change={"q5": lambda row: row.update(ranking=True)})
    done = run(tmp_path, "n_candidates=[2,3,5]", "strategy=direct", "model.reach=2")
    assert done.code == 0, done.err
    rows = table(done, "scaling")
    assert {row["n_candidates"]: row["n_items"] for row in rows if row["reference"] == "all"} == {
        2: 5,
        3: 5,
        5: 5,
    }
    found = {(row["reference"], row["n_candidates"]): row for row in rows}
    assert found["all", 2]["accuracy"] == 1.0 and found["all", 5]["accuracy"] == 0.4
    assert found["all", 5]["relative_to_two"] == pytest.approx(0.4)
    assert (found["with", 2]["n_items"], found["without", 2]["n_items"]) == (2, 3)
    assert "Acc(n)/Acc(2)" in done.out


def test_bad_items_fail_by_name_and_the_others_do_not_notice(tmp_path):
    def equal_sounds(row):
        twin = tmp_path / "twin.wav"
        soundfile.write(twin, *soundfile.read(tmp_path / row["candidates"][1]))
        row["candidates"][3] = "twin.wav"

    build(tmp_path, n=6, change={
        "q1": lambda row: row["candidates"].__setitem__(0, "lost.wav"),
        "q2": equal_sounds,
        "q3": lambda row: row.update(answer_index=9),
        "q4": lambda row: row.update(candidates=row["candidates"][:1], answer_index=0),
    })  # fmt: skip
    done = run(tmp_path, "strategy=[direct,apsc]", "n_trials=4")
    assert done.code == 0, done.err
    refused = record(done)["refused"]
    assert set(refused) == {"q1", "q2", "q3", "q4"}
    assert "lost.wav" in refused["q1"] and "missing_file" in refused["q1"]
    assert "clip2-1.wav" in refused["q2"] and "twin.wav" in refused["q2"]
    assert "gold_out_of_range" in refused["q3"] and "too_few_candidates" in refused["q4"]
    assert all(name in done.err for name in refused)
    found = overall(done)
    assert all((row["n_items"], row["n_valid"], row["accuracy"]) == (6, 2, 1.0) for row in found.values())

    path = f"model.path={done.folder / 'trials.parquet'}"
    again = run(tmp_path, "strategy=[direct,apsc]", "n_trials=4", path, model="recorded", out="again")
    assert again.code == 0 and record(again)["refused"] == refused
    counts = ("n_items", "n_valid", "n_failed", "n_correct", "accuracy")
    assert {s: [row[c] for c in counts] for s, row in overall(again).items()} == {
        s: [row[c] for c in counts] for s, row in found.items()
    }


def recorded(folder, rows, *overrides):
    """A run over responses that exist already: no audio, no model."""
    (folder / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run(folder, f"model.path={folder / 'r.jsonl'}", *overrides, model="recorded")


def test_a_model_that_names_nothing_has_no_answers_and_they_are_counted(tmp_path):
    build(tmp_path, n=2)
    rows = [
        {"id": f"q{i}", "trial": t, "response": "I hear several clips."} for i in range(2) for t in range(5)
    ]
    done = recorded(tmp_path, rows, "strategy=[direct,sc]", "n_trials=5")
    assert done.code == 0, done.err
    assert all(
        (row["n_unanswered"], row["n_correct"], row["n_valid"]) == (2, 0, 2) for row in overall(done).values()
    )
    assert "2 items whose trials name no single option" in done.out
    assert {row["option_reason"] for row in table(done, "trials")} == {"no_choice_named"}


def test_missing_responses_are_counted_apart_and_none_at_all_is_no_success(tmp_path):
    build(tmp_path, n=3)
    rows = [{"id": "q0", "trial": 0, "response": "Audio 1"}, {"id": "q1", "trial": 0, "response": None}]
    done = recorded(tmp_path, rows, "strategy=direct")
    assert done.code == 0
    row = overall(done)["direct"]
    assert (row["n_valid"], row["n_failed"], row["n_missing"], row["n_correct"]) == (3, 2, 2, 1)
    nobody = recorded(tmp_path, rows[1:], "strategy=direct")
    assert (
        nobody.code == 1
        and "no item has a response (no_recorded_response 3; the first: no_recorded_response)" in nobody.err
    )


def test_nothing_to_judge_is_not_a_success(tmp_path):
    build(tmp_path, n=1, change={"q0": lambda row: row.update(answer_index=7)})
    done = recorded(tmp_path, [{"id": "q0", "response": "Audio 1"}], "strategy=direct")
    assert done.code == 1 and "no item could be judged" in done.err


def test_votes_with_sampling_settings_of_their_own_are_generations_of_their_own(tmp_path):
    build(tmp_path, n=2)
    settings = ["n_trials=3", "model.temperature=0", "voting.temperature=0.2", "reader=second"]
    done = run(tmp_path, "strategy=[direct,sc]", *settings)
    stages = record(done)["stages"]
    assert stages["generate"]["rows"] == 2 and stages["generate_voting"]["rows"] == 6
    prints = record(done)["fingerprints"]
    assert prints["generate"] != prints["generate_voting"]
    assert "greedily" not in done.err
    shelves = list(Store(str(tmp_path / "store")).shelves("presented"))
    readers = {reader for shelf in shelves for reader in shelf.read(["reader"])["reader"].to_pylist()}
    assert len(shelves) == 2 and readers == {prints["read"]}, "a night reads by the same judge"


def test_greedy_self_consistency_is_pointed_out(capsys):
    greedy, sampled = Loudest(temperature=0), Loudest(temperature=0.2)
    votes, permuted = ({GenerationSet("mugen_direct", permute, False): 10} for permute in (False, True))
    warn_of_greedy_votes(greedy, votes)
    assert "SC equals a single answer" in capsys.readouterr().err
    warn_of_greedy_votes(greedy, permuted)
    warn_of_greedy_votes(sampled, votes)
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.max_clips=5"], "takes at most 5 clips"),
        (["n_candidates=1"], "from 2 up"),
        (["n_candidates=[]"], "from 2 up"),
        (["n_trials=0"], "at least 1"),
        (["voting.top_p=0.9"], "no setting 'top_p'"),
        (["strategy.direct.prompt=nothing"], "no prompt 'nothing'"),
        (["+strategy.direct.shuffle=true"], "shuffle"),
    ],
)
def test_what_cannot_run_is_said_before_anything_starts(tmp_path, overrides, message):
    build(tmp_path, n=2)
    with pytest.raises(ConfigError, match=message):
        run(tmp_path, "strategy=direct", *overrides)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("path", ["null", "absent.jsonl"])
def test_without_its_trials_no_clip_is_decoded_and_no_folder_is_made(tmp_path, monkeypatch, path):
    build(tmp_path, n=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pipelines.mugen_eval.probe_at_hand", None)
    config = composed(
        *("model=recorded", f"model.path={path}", "benchmark=mugen", "strategy=direct"),
        *("benchmark.path=m.jsonl", "store.root=store"),
        pipeline="mugen_eval",
    )
    with pytest.raises(TableError, match=r"model.path=my_trials.jsonl|absent.jsonl"):
        evaluate(config, None, "r", "title")
    assert not (tmp_path / "runs").exists()


def test_a_sweep_ends_with_the_joint_table(six_strategies, tmp_path):
    """The only run in a process of its own: `-m` as a user types it, on recorded answers, without Ray."""
    folder, done = six_strategies
    command = [sys.executable, "-m", "pipelines.mugen_eval", "-m", "model=recorded", "benchmark=mugen"]
    where = [f"model.path={done.folder / 'trials.parquet'}", f"benchmark.path={folder / 'm.jsonl'}"]
    where += [f"store.root={tmp_path / 'store'}", f"out={tmp_path / 'sweep'}", "strategy=direct,sc,apsc"]
    sweep = subprocess.run([*command, *where], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert sweep.returncode == 0, sweep.stderr
    joint = {
        row["strategy"]: row
        for row in pq.read_table(tmp_path / "sweep" / "summary.parquet").to_pylist()
        if row["group"] == "all"
    }
    assert joint["apsc"]["gain"] == pytest.approx(0.6) and joint["sc"]["gain"] == 0.0
    assert "all 3 finished jobs" in sweep.stdout


def test_a_dry_run_leaves_nothing_behind(tmp_path):
    command = [sys.executable, "-m", "pipelines.mugen_eval", "dry_run=true", "strategy=direct,apsc"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    plan = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert plan.returncode == 0, plan.stderr
    assert "nothing was started, loaded or written" in plan.stdout
    assert not list(tmp_path.iterdir())
