"""Audits on a real Ray: recorded emotional speech and judges whose skills are known, and the same runs read again."""

import contextlib
import io
import json
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir

from operators.audit_states import STATE_NAMES
from pipelines.config import CONF, ConfigError
from pipelines.judge_audit import audit
from tests.audit_toys import crema_audit
from tests.pipelines.cli import TOY_PATH
from tests.shared_data import shared

# Whole runs on Ray: more time than the fast part has.
pytestmark = [pytest.mark.weights, pytest.mark.usefixtures("ray_session")]


@pytest.fixture(scope="module")
def crema(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crema")
    crema_audit(folder, shared("crema_d"))
    return folder


def run(folder, *overrides, model="toy_judge", out="run", path=None, kind="single_turn_emotions"):
    """One run in this process; what it printed and its return code."""
    where = [TOY_PATH, f"benchmark={kind}", f"benchmark.path={path or folder / 'crema.jsonl'}"]
    where.append(f"store.root={folder / 'store'}")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        fixed = [f"model={model}", "n_resamples=200", f"out='{folder / out}'"]
        config = compose("judge_audit", overrides=[*where, *fixed, *overrides])
    printed, told, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        try:
            audit(config, "toy", "test")
        except SystemExit as end:
            code, _ = 1, print(end.code, file=told)
    return SimpleNamespace(code=code, out=printed.getvalue(), err=told.getvalue(), folder=folder / out)


def table(done, name):
    return pq.read_table(done.folder / f"{name}.parquet").to_pylist()


def masses(done, model="toy", cue="none", control="none"):
    rows = [r for r in table(done, "states") if (r["model"], r["cue"], r["control"]) == (model, cue, control)]
    return {row["state"]: row["mass"] for row in rows}


def accuracy(done, probe, model="toy", cue="none", control="none"):
    (row,) = [
        r
        for r in table(done, "accuracy")
        if (r["model"], r["cue"], r["control"], r["probe"], r["split"]) == (model, cue, control, probe, "all")
    ]
    return row


def record(done):
    return json.loads((done.folder / "run.json").read_text())


def only(state):
    return {name: float(name == state) for name in STATE_NAMES}


def test_a_judge_with_ears_is_reliable_on_recorded_speech_and_nothing_is_computed_twice(crema):
    first = run(crema, "cues=[none,hard]", out="ears")
    assert first.code == 0, first.err
    assert masses(first) == masses(first, cue="hard") == only("111")
    assert accuracy(first, "pairwise")["n_correct"] == 20 and accuracy(first, "pointwise")["n_correct"] == 40
    assert "Reliable. It hears the voice" in first.out
    calls = record(first)["calls"]
    assert calls == {"pointwise": 80, "pairwise": 40, "perception": 80, "oracle": 80, "staging": 80}
    heard = {"pointwise": 3, "pairwise": 4, "perception": 1, "oracle": 0, "staging": 0}
    rows = [r for r in table(first, "verdicts") if r["model"] == "toy"]
    assert {(r["probe"], json.loads(r["usage"])["audio_clips"]) for r in rows} == set(heard.items())

    again = run(crema, "cues=[none,hard]", out="ears again")
    assert "computed 0 replies, found 360 in the store" in again.out
    for name in ("verdicts", "instances", "accuracy", "states", "rates"):
        assert table(again, name) == table(first, name)

    path = first.folder / "verdicts.parquet"
    recorded = run(
        crema, "cues=[none,hard]", "controls=[]", f"model.path={path}", model="recorded", out="recorded"
    )
    assert recorded.code == 0 and "note:" not in recorded.err, recorded.err
    assert masses(recorded) == only("111") and accuracy(recorded, "pairwise")["n_correct"] == 20


def test_skills_that_do_not_come_together_are_told_apart(crema):
    potemkin = run(crema, "cues=[none]", "model.combines=false", out="potemkin")
    assert "Potemkin. It hears how the user sounds" in (potemkin.folder / "audit.html").read_text()
    found = masses(potemkin)
    assert found["110"] == found["111"] == 0.5  # it says R1, which is right for one branch of every item
    assert accuracy(potemkin, "staging")["accuracy"] == 1.0
    assert (
        "toy, cue none: Potemkin. It hears how the user sounds and knows which reply suits that"
        in potemkin.out
    )

    deaf = run(crema, "cues=[none]", "model.hears=false", "model.combines=false", out="deaf")
    assert accuracy(deaf, "pointwise")["accuracy"] == accuracy(deaf, "perception")["accuracy"] == 0.5
    assert "toy, cue none: Shortcut user." in deaf.out


def test_controls_expose_what_is_not_hearing(crema):
    done = run(crema, "cues=[none]", "controls=[text_only,silence,always_first,random]", out="controls")
    assert done.code == 0, done.err
    for control in ("text_only", "silence"):
        assert accuracy(done, "pointwise", control=control)["accuracy"] == 0.5
        assert accuracy(done, "pointwise", control=control)["voice_changes"] == 0.0
    assert accuracy(done, "pointwise", "always_first", control="always_first")["accuracy"] == 0.5
    assert accuracy(done, "oracle", "random", control="random")["n_scored"] == 40
    assert "The items leak" not in done.out
    silent = [r for r in table(done, "verdicts") if r["control"] == "silence" and r["probe"] == "pairwise"]
    assert {json.loads(r["usage"])["audio_clips"] for r in silent} == {4}


def test_a_judge_that_cannot_be_read_has_no_numbers_and_fails_the_run(crema):
    never = run(
        crema,
        "cues=[none]",
        "benchmark.limit=3",
        "model.readable_from=9",
        "controls=[]",
        "attempts=2",
        out="never",
    )
    assert never.code == 1 and "27 of 27 calls have no readable verdict" in never.err
    rows = table(never, "verdicts")
    assert {row["correct"] for row in rows} == {None} and len(rows) == 3 * 9
    assert {row["n_attempts"] for row in rows if row["probe"] != "staging"} == {2}
    assert {row["reason"].split(":")[0] for row in rows} == {"no_json", "no_perception"}
    assert accuracy(never, "pointwise")["accuracy"] is None and masses(never)["111"] is None


def test_both_orders_of_every_call(crema):
    done = run(
        crema, "cues=[none]", "benchmark.limit=4", "counterbalance=true", "model.combines=false", out="both"
    )
    row = accuracy(done, "pointwise")
    assert (row["n_calls"], row["n_both_orders"], row["order_consistency"], row["accuracy"]) == (
        16,
        8,
        0.0,
        0.5,
    )


def test_an_item_that_cannot_be_heard_is_left_out_by_name(crema, tmp_path):
    lines = [json.loads(line) for line in (crema / "crema.jsonl").read_text().splitlines()[:4]]
    for line in lines:
        for part in [*line["branches"][0], *line["branches"][1], *line["responses"]]:
            part["audio"] = str(crema / part["audio"])
    lines[0]["branches"][0][0]["audio"] = str(tmp_path / "gone.wav")
    lines[1]["branches"][1][0]["audio"] = lines[1]["branches"][0][0]["audio"]
    (tmp_path / "broken-angry.wav").write_text("no sound")
    lines[2]["responses"][1]["audio"] = str(tmp_path / "broken-angry.wav")
    path = tmp_path / "crema.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run(tmp_path, "cues=[none]", "benchmark.allow_outside=true", path=path)
    assert done.code == 0, done.err
    refused = record(done)["refused"]
    assert list(refused) == ["c0", "c1", "c2"]
    assert refused["c1"] == "same_sound: the two branches are the same clips"
    assert "gone.wav" in refused["c0"] and "broken-angry.wav" in refused["c2"]
    assert accuracy(done, "pointwise")["n_calls"] == 2 and "note: c1: same_sound" in done.err

    # Replies of elsewhere to all four: where the clips are at hand, the same items are refused.
    reply = {"probe": "pointwise", "response": '{"pred": "R1"}'}
    said = [{"id": f"c{n}", "branch": branch, **reply} for n in range(4) for branch in (0, 1)]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    fixed = ["cues=[none]", "benchmark.allow_outside=true", f"model.path={tmp_path / 'said.jsonl'}"]
    again = run(tmp_path, *fixed, model="recorded", path=path, out="recorded")
    assert again.code == 0 and record(again)["refused"] == refused, again.err
    assert accuracy(again, "pointwise", "said")["n_calls"] == 2 and "note: c1: same_sound" in again.err

    for line in lines:
        for part in [*line["branches"][0], *line["branches"][1], *line["responses"]]:
            part["audio"] = (
                part["audio"].replace(str(crema), "/elsewhere").replace(str(tmp_path), "/elsewhere")
            )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    away = run(tmp_path, *fixed, model="recorded", path=path, out="away")
    assert away.code == 0 and record(away)["refused"] == {}, away.err
    assert "local clips is here, so missing, broken and equal" in away.err


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("cues=[transition]", "single_turn_emotions has no such cue"),
        ("cues=[loud]", "Allowed here: hard, none, soft"),
        ("probes=[pointwise,staging]", "needs perception"),
        ("probes=[]", "choose at least one"),
        ("controls=[deaf]", "unknown config key 'controls.deaf'"),
        ("attempts=0", "attempts: at least 1"),
        ("model.max_clips=3", "takes at most 3 clips, and 20 items need more .item 'c9': 4."),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(crema, override, told):
    with pytest.raises(ConfigError, match=told):
        run(crema, override, out="refused")
    assert not (crema / "refused").exists()
