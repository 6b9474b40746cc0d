"""Asking a judge, without Ray: attempts, staging on what was heard, controls, and what is refused before."""

import numpy as np
import pyarrow as pa
import pytest

from operators.audit.presentation import PROBES, SILENCE, TEXT_ONLY, Design
from operators.base import apply
from operators.frames import to_batch
from operators.schema import RESPONSE
from operators.store import Store
from pipelines import phases
from pipelines.audit_phases import Court, bluff_all, counts, judge_all, same_sound, silent_clip
from pipelines.config import Cluster
from pipelines.phases import Journal
from tests.audit_toys import ToyJudge, items_of, positional, single

DESIGN = Design(PROBES, ("none",), 0)


@pytest.fixture
def court(monkeypatch, tmp_path):
    """A court whose judge answers in this process; `asked` collects the rows of every round."""
    asked = []

    def generate(rows, name, model, store, cluster, journal, stage="generate"):
        asked.append(rows.to_pylist())
        done = apply(model, model.build(), to_batch(rows, tuple(rows.column_names)))
        said = {column: list(done[column]) for column in model.writes}
        replies = [dict(zip(said, cells, strict=True)) for cells in zip(*said.values(), strict=True)]
        about = rows.select(["item_id", "trial"]).to_pylist()
        whole = [one | reply | {"model": name} for one, reply in zip(about, replies, strict=True)]
        return pa.Table.from_pylist(whole, schema=RESPONSE)

    monkeypatch.setattr(phases, "generate", generate)

    def of(judge, attempts=5):
        made = Court("toy", judge, attempts, Store(str(tmp_path / "store")), Cluster(), Journal())
        made.asked = asked
        return made

    return of


class Listed(ToyJudge):
    """Its clips need not exist."""

    def build(self):
        def op(batch):
            columns = {name: np.full(len(batch["probe"]), None, dtype=object) for name in self.writes}
            for row in range(len(batch["probe"])):
                import json

                pred = self._pred({name: batch[name][row] for name in self.reads})
                good = batch["trial"][row] >= self.readable_from
                columns["response"][row] = json.dumps({"pred": pred}) if good else "Hm."
            return columns

        return op


def named(item):
    """The item with clips called after the emotion they show, as the toy wants them."""
    for y, branch in enumerate(item["branches"]):
        for t, turn in enumerate(branch):
            turn["audio_uri"] = f"/{y}{t}-{turn['emotion']}.wav"
    for y, reply in enumerate(item["responses"]):
        reply["audio_uri"] = f"/r{y}-{item['branches'][y][0]['emotion']}.wav"
    uris = [part["audio_uri"] for group in (*item["branches"], item["responses"]) for part in group]
    return item | {"audio_uris": uris, "audio_hashes": uris, "audio_seconds": [1.0] * len(uris)}


@pytest.fixture
def items(tmp_path):
    return [
        named(item)
        for item in items_of("single_turn_emotions", [single("s1"), single("s2", ("happy", "sad"))], tmp_path)
    ]


def test_staging_waits_for_perception_and_tells_what_was_heard(court, items):
    judge = court(Listed(hears=False))
    verdicts = judge_all(items, [DESIGN], judge)
    first, second = judge.asked
    assert {row["probe"] for row in first} == {"pointwise", "pairwise", "perception", "oracle"}
    assert {row["probe"] for row in second} == {"staging"} and len(second) == 4
    heard = {r["item_id"]: r["names"][0] for r in verdicts if r["probe"] == "perception"}
    for row in second:
        assert f"(user, {heard[row['item_id']]})" in row["question"]
    assert (
        sum(row["correct"] for row in verdicts if row["probe"] == "staging") == 2
    )  # E1 is right in one branch
    assert all(row["correct"] for row in verdicts if row["probe"] in ("pointwise", "pairwise", "oracle"))


def test_only_unreadable_replies_are_asked_for_again(court, items):
    judge = court(Listed(readable_from=2), attempts=3)
    verdicts = judge_all(items, [DESIGN._replace(probes=("pointwise",))], judge)
    assert [[row["trial"] for row in rows] for rows in judge.asked] == [[0] * 4, [1] * 4, [2] * 4]
    assert all(row["correct"] and row["n_attempts"] == 3 for row in verdicts)
    assert len(judge_all(items, [DESIGN._replace(probes=("oracle",))], court(Listed()))) == 4
    assert len(judge.asked) == 4


def test_what_was_never_heard_cannot_be_staged(court, items):
    verdicts = judge_all(items, [DESIGN], court(Listed(readable_from=9), attempts=1))
    staged = [row for row in verdicts if row["probe"] == "staging"]
    assert {row["reason"].split(":")[0] for row in staged} == {"no_perception"} and len(staged) == 4
    told = counts(verdicts)
    assert told["null_verdicts"] == {"no_json": 14, "no_perception": 4} and told["replies"] == 14
    assert told["calls"] == {"pointwise": 4, "pairwise": 2, "perception": 4, "oracle": 4, "staging": 4}


def test_controls_are_asked_together_with_the_judge_itself(court, items):
    judge = court(Listed(combines=False, hears=False))
    designs = [DESIGN, DESIGN._replace(control=TEXT_ONLY), DESIGN._replace(control=SILENCE)]
    verdicts = judge_all(items, designs, judge)
    assert len(judge.asked) == 2 and len(verdicts) == 3 * 18
    silent = [row for row in judge.asked[0] if row["control"] == SILENCE and row["probe"] == "pointwise"]
    assert {tuple(row["audio_uris"][:1]) for row in silent} == {(silent_clip().uri,)}
    assert silent_clip().seconds == 10.0 and silent[0]["audio_seconds"] == [10.0, 1.0, 1.0]


def test_bluffs_need_no_judge(tmp_path):
    items = items_of("positional_emotion", [positional()], tmp_path)
    rows = bluff_all(items, DESIGN, ["always_first", "random"])
    assert len(rows) == 18 and {row["model"] for row in rows} == {row["control"] for row in rows} == {
        "always_first",
        "random",
    }
    assert all(row["pred"] in ("R1", "E1,E1,E1") for row in rows if row["model"] == "always_first")
    assert all(row["correct"] is not None for row in rows)


def test_branches_or_responses_that_are_one_sound_are_no_contrast(items):
    item = items[0]
    assert same_sound(item) is None
    a, b, r0, r1 = item["audio_hashes"]
    assert "two branches" in same_sound(item | {"audio_hashes": [a, a, r0, r1]})
    assert "two responses" in same_sound(item | {"audio_hashes": [a, b, r0, r0]})
