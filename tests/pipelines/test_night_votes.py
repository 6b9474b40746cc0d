"""Nights over the trials of MUGEN: votes taken anew from the store alone, and only where something changed."""

import contextlib
import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators import nights
from operators.answers import Extraction
from operators.base import Resources, Stage
from operators.buckets import Buckets, portions
from operators.fingerprint import digest, fingerprint
from operators.frames import with_columns
from operators.judges.option_judge import OptionJudge
from operators.mugen import judged, kept
from operators.mugen.judged import judge_of
from operators.mugen.kept import Presenting, keep_presented
from operators.mugen.options import Asked, RuleReader
from operators.mugen.presentation import GenerationSet, Strategy
from operators.store import Store
from pipelines import night_votes
from pipelines.lookup import Lookup
from pipelines.mugen_phases import fan_out
from pipelines.rescore import rescore
from tests.mugen_toys import Loudest
from tests.pipelines.cli import TOY_PATH, composed
from tests.pipelines.test_mugen_phases import items

STRATEGIES = {
    "direct": Strategy("mugen_direct"),
    "apsc": Strategy("mugen_direct", permute=True, vote=True),
}
SETS = {GenerationSet("mugen_direct", False, False): 1, GenerationSet("mugen_direct", True, False): 3}
ITEMS = 4


def answered(root, model=None, n_trials=3, change=None, said=None, judge=None):
    """What a run leaves in the store: a model that names the right clip where it stands first or second, else the first."""
    store, model = Store(str(root)), model or Loudest()
    asked = with_columns(
        items(ITEMS), {"audio_hashes": pa.array([[f"{i}{k}" for k in "abcdef"] for i in range(ITEMS)])}
    )
    asked = change(asked) if change else asked
    rows = pa.concat_tables(fan_out(asked.to_pylist(), {**SETS, list(SETS)[1]: n_trials}, [None], seed=0))
    blocked = [None] * rows.num_rows
    lookup = Lookup(
        Stage("generate", model, Resources()), store.responses(model), rows, blocked, "response_error"
    )
    places = [row["audio_order"].index(row["gold_index"]) for row in rows.to_pylist()]
    texts = [said(place) if said else f"Audio {place + 1 if place < 2 else 1}" for place in places]
    errors = pa.array([None if text else "refused: by the server" for text in texts], pa.string())
    table = pa.table({"key": lookup.keys, "response": pa.array(texts, pa.string())})
    blank = {
        name: rows[name] if name in rows.column_names else pa.nulls(len(rows))
        for name in ("item_id", "benchmark", "trial", "finish_reason", "usage")
    }
    new = with_columns(table, blank).filter(errors.is_null())
    stored = store.responses(model).find(new["key"].to_pylist())["key"].to_pylist()
    store.responses(model).append(new.filter(pa.array([key not in stored for key in new["key"].to_pylist()])))
    questions = dict(zip(asked["item_id"].to_pylist(), asked["question"].to_pylist(), strict=True))
    whose = {"model": pa.repeat("loud", len(rows)), "response_error": errors, "response_key": lookup.keys}
    how = Presenting(STRATEGIES, False, 0, questions, judge_of(judge))
    keep_presented(store, model, [with_columns(rows, whose)], how)
    return rows


def night(folder, out):
    """A night over the store in `folder`: exit status, what was told, its record and its rows by benchmark and item."""
    where = [TOY_PATH, "scorers=toy", f"store.root={folder / 'store'}", f"out={folder / out}"]
    told = io.StringIO()
    with (
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(told),
        pytest.raises(SystemExit) as ended,
    ):
        rescore(composed(*where, pipeline="rescore"), "toy")
    record = json.loads((folder / out / "run.json").read_text())
    rows = pq.read_table(folder / out / "rows.parquet").to_pylist()
    return ended.value.code, told.getvalue(), record, {(r["benchmark"], r["item_id"]): r for r in rows}


def drift(folder, out):
    return json.loads((folder / out / "drift.json").read_text())


@pytest.fixture
def folder(tmp_path):
    answered(tmp_path / "store")
    return tmp_path


def test_votes_are_taken_from_the_store_alone(folder):
    status, told, record, rows = night(folder, "one")
    assert status == 0, told
    assert record["votes"] == {"rows": 8, "carried_over": 0, "trials_read": 4 + 12, "waiting": 0}
    assert {row["model"] for row in rows.values()} == {"loud"} and record["not_scored"] == 0
    # Gold of item i is candidate i: in the original order the first two are heard where they stand, the others are missed.
    assert [rows["b (direct)", f"q{i}"]["correct"] for i in range(ITEMS)] == [True, True, False, False]
    # A vote is a choice among original candidates, so what won can be worked out from the orders.
    for i in range(ITEMS):
        assert rows["b (apsc)", f"q{i}"]["answer_index"] == voted(folder, f"q{i}")
        assert rows["b (apsc)", f"q{i}"]["m1_acoustic_grounding_reason"] == night_votes.NO_METRIC
    assert "8 of the rows are votes" in told
    summary = pq.read_table(folder / "one" / "summary.parquet").to_pylist()
    direct = next(r for r in summary if r["benchmark"] == "b (direct)" and r["group_kind"] == "overall")
    assert (direct["n_correct"], direct["n_valid"], direct["accuracy"]) == (2, 4, 0.5)


def voted(folder, item_id):
    """The choice that most of an item's three permuted trials make, the first of them where all differ."""
    rows = Store(str(folder / "store")).presented(Loudest()).read().to_pylist()
    mine = sorted(
        (r for r in rows if r["item_id"] == item_id and r["strategy"] == "apsc"), key=lambda r: r["trial"]
    )
    picks = []
    for row in mine:
        place = row["audio_order"].index(row["gold_index"])
        picks.append(row["audio_order"][place if place < 2 else 0])
    return max(picks, key=lambda pick: (picks.count(pick), -picks.index(pick)))


def test_trials_of_one_vote_are_read_together_however_few_at_once():
    vote = np.array([2, 0, 1, 0, 2, 0, 3])
    portions = [part.tolist() for part in night_votes._portions(vote, np.array([0, 2, 3]), at_once=2)]
    assert portions == [[1, 3, 5], [0, 4], [6]]
    assert list(night_votes._portions(vote, np.array([], int), at_once=2)) == []


@pytest.mark.weights  # two nights
def test_a_night_in_which_nothing_changed_reads_nothing(folder):
    night(folder, "one")
    answered(folder / "store")
    shelf = Store(str(folder / "store")).presented(Loudest())
    assert len(shelf.parts()) == 1, "asked again as it was, nothing is written again"
    status, _, record, rows = night(folder, "two")
    assert (status, drift(folder, "two")["changes"]) == (0, [])
    assert record["votes"] == {"rows": 8, "carried_over": 8, "trials_read": 0, "waiting": 0}
    assert [rows["b (direct)", f"q{i}"]["correct"] for i in range(ITEMS)] == [True, True, False, False]


@pytest.mark.weights  # two nights
def test_more_trials_are_read_with_the_votes_that_they_are_part_of(folder):
    night(folder, "one")
    answered(folder / "store", n_trials=5)
    _, _, record, _ = night(folder, "two")
    assert record["votes"] == {"rows": 8, "carried_over": 4, "trials_read": 20, "waiting": 0}


@pytest.mark.weights  # two nights
def test_another_version_of_the_reader_reads_all_anew_and_is_named_as_the_cause(folder, monkeypatch):
    night(folder, "one")

    class Other(RuleReader):
        version = RuleReader.version + 1

        def read(self, asked):
            return [replace(found, index=0) for found in super().read(asked)]

    monkeypatch.setattr(night_votes, "READER", Other())
    monkeypatch.setattr("pipelines.rescore.READER", Other())
    _, _, record, rows = night(folder, "two")
    assert record["votes"]["trials_read"] == 16
    assert record["fingerprints"]["read"] == fingerprint(Other()) != fingerprint(RuleReader())
    # The first position in the original order is candidate 0: right for the first of four items, where two of four were.
    assert [rows["b (direct)", f"q{i}"]["correct"] for i in range(ITEMS)] == [True, False, False, False]
    (change,) = [c for c in drift(folder, "two")["changes"] if c["benchmark"] == "b (direct)"]
    assert (change["measure"], change["last"], change["now"]) == ("accuracy", 0.5, 0.25)
    assert [cause["kind"] for cause in change["causes"]] == ["new_extraction"]


@pytest.mark.weights  # two nights
def test_trials_of_an_item_that_was_corrected_since_take_no_part(folder):
    def corrected(asked):
        return with_columns(asked, {"gold_index": pa.array([2, 1, 2, 3])})

    night(folder, "one")
    answered(folder / "store", n_trials=1, change=corrected)
    _, _, record, rows = night(folder, "two")
    assert rows["b (direct)", "q0"]["gold_index"] == 2 and rows["b (direct)", "q0"]["correct"] is False
    # q0's one corrected trial votes alone; the others keep their three.
    assert record["votes"] == {"rows": 8, "carried_over": 6, "trials_read": 2, "waiting": 0}
    assert {c["measure"] for c in drift(folder, "two")["changes"]} == {"accuracy"}


@pytest.mark.weights  # two nights
def test_a_trial_that_failed_is_no_vote_and_one_without_a_response_waits(tmp_path):
    answered(tmp_path / "store", said=lambda place: "Audio 1" if place == 0 else None)
    _, told, record, rows = night(tmp_path, "one")
    assert record["votes"]["rows"] == 8
    lost = rows["b (direct)", "q3"]
    assert (lost["correct"], lost["answer_index"], lost["response_error"]) == (
        False,
        None,
        "refused: by the server",
    )
    shelf = Store(str(tmp_path / "store")).responses(Loudest())
    shelf.remove(shelf.parts())
    _, told, record, _ = night(tmp_path, "two")
    assert record["votes"]["waiting"] > 0 and "wait for responses" in told


JUDGE = OptionJudge(chat="nobody who could be asked again")


def vague(place):
    """Words in which no rule finds an option, one for each place of the right clip."""
    return "near the " + ("start", "top", "middle", "back", "end")[place]


def decide(root, places):
    """The judge finds the option that `vague` words mean."""
    asked = [Asked(f"Question {i}", 5, vague(place)) for i in range(ITEMS) for place in places]
    found = [Extraction(place, "judge", None) for place in places] * ITEMS
    judged.keep(Store(str(root)).scores(judged.READINGS, JUDGE), asked, found)


@pytest.mark.weights  # three nights
def test_a_night_takes_what_the_judge_of_the_run_decided_and_asks_nobody(tmp_path):
    answered(tmp_path / "store", said=vague, judge=JUDGE)
    decide(tmp_path / "store", places=[0, 1, 2, 4])
    _, told, record, rows = night(tmp_path, "one")
    # Gold of item i stands at place i in the original order: nobody decided about q3's only trial.
    assert [rows["b (direct)", f"q{i}"]["correct"] for i in range(3)] == [True] * 3
    assert ("b (direct)", "q3") not in rows and "or for what a judge reads in them" in told
    permuted = [row for (name, _), row in rows.items() if name == "b (apsc)"]
    assert permuted and all(row["correct"] for row in permuted), "the verdicts that there are decide"
    assert record["votes"]["waiting"] == 8 - len(rows)
    partly = [row for row in permuted if "without" in row["content"]]
    assert partly, "some trial presents the right clip fourth"

    decide(tmp_path / "store", places=[3])
    _, _, record, rows = night(tmp_path, "two")
    assert len(rows) == 8 and all(row["correct"] for row in rows.values())
    whole = 3 + len(permuted) - len(partly)
    assert (record["votes"]["carried_over"], record["votes"]["waiting"]) == (whole, 0)
    assert {one["reader"] for one in record["voted"]} == {fingerprint(JUDGE)}

    answered(tmp_path / "store", said=vague)
    _, _, record, rows = night(tmp_path, "three")
    assert not any(row["correct"] for row in rows.values()), "the last run read by rules"
    changes = drift(tmp_path, "three")["changes"]
    assert {cause["kind"] for change in changes for cause in change["causes"]} == {"new_extraction"}


def test_a_last_run_of_fewer_trials_says_how_all_are_read(tmp_path):
    store = Store(str(tmp_path / "store"))
    for judge, n_trials, expected in ((JUDGE, 5, [0, 1, 2, 3]), (None, 1, [None] * 4)):
        answered(tmp_path / "store", said=vague, judge=judge, n_trials=n_trials)
        decide(tmp_path / "store", places=range(5))
        known, now = (Buckets(tmp_path / f"{name}{n_trials}", nights.NIGHT_ROW) for name in ("known", "now"))
        night_votes.votes_of(store, kept.systems(store), known, now, tmp_path / f"votes{n_trials}", 1000)
        rows = [row for (some,) in portions(now) for row in some.to_pylist()]
        chosen = {row["item_id"]: row["answer_index"] for row in rows if row["benchmark"] == "b (apsc)"}
        assert [chosen[f"q{i}"] for i in range(ITEMS)] == expected, judge


def test_what_rules_read_is_kept_under_the_content_that_it_had_before_there_were_readers(tmp_path):
    answered(tmp_path / "store")
    (shelf,) = Store(str(tmp_path / "store")).shelves("presented")
    before = [name for name in kept.PRESENTED.names if name not in ("key", "content", "asked_at", "reader")]
    for row in shelf.read(kept.PRESENTED.names).to_pylist():
        assert row["content"] == digest([[name, row[name]] for name in before], 32)


@pytest.mark.weights
def test_another_model_under_the_name_is_told_apart(folder):
    answered(folder / "store", model=Loudest(reach=1), said=lambda place: "Audio 1")
    systems = kept.systems(Store(str(folder / "store")))
    old, new = fingerprint(Loudest()), fingerprint(Loudest(reach=1))
    assert {one.name for one in systems[new].values()} == {"loud"}
    assert {one.name for one in systems[old].values()} == {f"loud@{old[:8]}"}
    _, _, record, _ = night(folder, "one")
    assert record["votes"]["rows"] == 16
    assert {(one["model"], one["benchmark"]) for one in record["voted"]} == {
        (model, f"b ({name})") for model in ("loud", f"loud@{old[:8]}") for name in STRATEGIES
    }
