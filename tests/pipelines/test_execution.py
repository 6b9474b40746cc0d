"""Stages on a real local Ray, with toy Specs."""

import os
import time
from collections import Counter
from glob import glob
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from pydantic.dataclasses import dataclass

from operators.base import Resources, Stage
from operators.batching import Memo
from operators.spool import Spool
from pipelines.config import Cluster
from pipelines.execution import run, session
from pipelines.lookup import encoded
from pipelines.room import ResourceError


@dataclass(frozen=True)
class Length:
    """A toy metric: the length of a text; refuses "bad", kills its process on "poison" until a file exists."""

    reads: ClassVar[tuple[str, ...]] = ("response",)
    writes: ClassVar[tuple[str, ...]] = (
        "m1_acoustic_grounding", "m1_acoustic_grounding_reason", "m1_acoustic_grounding_details",
    )  # fmt: skip
    version: ClassVar[int] = 1
    antidote: str = ""

    def build(self):
        def op(batch):
            texts = batch["response"]
            if "bad" in texts:
                raise ValueError("bad text")
            if "poison" in texts and not os.path.exists(self.antidote):
                open(self.antidote, "w").close()
                os._exit(1)
            nothing = np.full(len(texts), None, dtype=object)
            return dict(
                zip(self.writes, (np.array([float(len(t)) for t in texts]), nothing, nothing), strict=True)
            )

        return op


def table(texts):
    return pa.table({"response": texts, "row": range(len(texts))})


def test_rows_come_back_once_with_errors_beside_them(ray_session):
    texts = [f"{'x' * n}" for n in range(40)] + ["bad"]
    done = pa.concat_tables(
        run([Stage("m1", Length(), Resources(batch_size=8))], table(texts), "test")
    ).sort_by("row")
    assert done["m1_acoustic_grounding"].to_pylist() == [*map(float, range(40)), None]
    assert done["m1.error"].to_pylist() == [None] * 40 + ["ValueError: bad text"]


@pytest.mark.weights
def test_a_stage_leaves_rows_alone_that_are_not_to_do(ray_session):
    rows = table(["aa", "bad", "cccc"]).append_column("m1.todo", pa.array([True, False, True]))
    done = pa.concat_tables(run([Stage("m1", Length())], rows, "test")).sort_by("row")
    assert done["m1_acoustic_grounding"].to_pylist() == [2.0, None, 4.0]
    assert done["m1.error"].null_count == 3


@pytest.mark.weights
def test_a_worker_that_dies_is_replaced_and_no_row_is_lost(ray_session, tmp_path):
    texts = ["x"] * 20 + ["poison"] + ["yy"] * 20
    stage = Stage("m1", Length(antidote=str(tmp_path / "antidote")), Resources(batch_size=8))
    done = pa.concat_tables(run([stage], table(texts), "test")).sort_by("row")
    assert done["m1_acoustic_grounding"].to_pylist() == [1.0] * 20 + [6.0] + [2.0] * 20


def test_pools_that_do_not_fit_are_refused_instead_of_waiting_for_ever(ray_session):
    stages = [Stage(name, Length(), Resources(cpus=2)) for name in ("m1", "m2")]
    with pytest.raises(ResourceError, match=r"together need 4 CPUs.* the cluster has 2"):
        list(run(stages, table(["a"]), "test"))
    with pytest.raises(ResourceError, match="GPU"):
        list(run([Stage("m1", Length(), Resources(gpus=1))], table(["a"]), "test"))


@dataclass(frozen=True)
class Diary(Length):
    """Length by way of a memo of words; writes every word that it looks up, and its process, into a file.

    Its first process to meet "poison" dies with its claims open. Work begins when `workers` processes have a block.
    """

    diary: str = ""
    workers: int = 1

    def build(self):
        memo = Memo("words")
        with open(f"{self.diary}.{os.getpid()}", "w"):
            deadline = time.monotonic() + 120

        def look_up(words):
            while len(glob(f"{self.diary}.*")) < self.workers and time.monotonic() < deadline:
                time.sleep(0.01)
            if "poison" in words and not os.path.exists(self.antidote):
                open(self.antidote, "w").close()
                os._exit(1)
            with open(self.diary, "a") as file:
                file.write("".join(f"{word} {os.getpid()}\n" for word in words))
            return [float(len(word)) for word in words]

        def op(batch):
            texts = [text.split() for text in batch["response"]]
            flat = [word for words in texts for word in words]
            known = dict(zip(flat, memo.get(flat, look_up), strict=True))
            values = np.array([sum(known[word] for word in words) for words in texts])
            nothing = np.full(len(texts), None, dtype=object)
            return dict(zip(self.writes, (values, nothing, nothing), strict=True))

        return op


def chains(rows, words, each=12):
    """Texts that share their words in no order: no way to cut the rows keeps all rows of a word together."""
    draw = np.random.default_rng(0)
    return [
        " ".join("w" * (1 + n % 7) + str(n) for n in draw.integers(words, size=each)) for _ in range(rows)
    ]


def read_apart(texts, tmp_path, **more):
    """The finished rows of three workers, what they looked up, and how often; what their blocks say of it."""
    diary = tmp_path / "diary"
    stage = Stage("m1", Diary(diary=str(diary), **more), Resources(cpus=0.5, actors=3, batch_size=8))
    done = pa.concat_tables(run([stage], table(texts), "test")).sort_by("row")
    lines = [line.split() for line in diary.read_text().splitlines()]
    return done, Counter(word for word, _ in lines), {process for _, process in lines}


@pytest.mark.weights
def test_several_workers_encode_each_distinct_unit_once_in_a_run(ray_session, tmp_path):
    texts = chains(rows=160, words=150)
    done, times, processes = read_apart(texts, tmp_path, workers=2)
    distinct = set(" ".join(texts).split())
    assert len(processes) > 1, "the work was shared"
    assert times == dict.fromkeys(distinct, 1)
    assert encoded(done, "m1") == {"words": len(distinct)}, "and the run's record says so"
    expected = [float(sum(map(len, text.split()))) for text in texts]
    assert done["m1_acoustic_grounding"].to_pylist() == expected


@pytest.mark.weights
def test_a_worker_that_dies_with_units_in_hand_leaves_them_to_others(ray_session, tmp_path):
    texts = [*chains(rows=60, words=40), "poison", *chains(rows=60, words=40)]
    done, times, _ = read_apart(texts, tmp_path, antidote=str(tmp_path / "antidote"))
    assert done["m1_acoustic_grounding"].to_pylist() == [float(sum(map(len, t.split()))) for t in texts]
    assert (tmp_path / "antidote").exists() and times["poison"] == 1
    assert times == dict.fromkeys(" ".join(texts).split(), 1), "what it had settled is not done again"


@pytest.mark.weights
def test_what_must_stay_whole_is_met_by_one_worker_in_one_block(ray_session, tmp_path):
    # Items of 1 to 40 rows, blocks of at most 8: every row has a word of its own, so its worker is in the diary.
    items = [f"q{i}" for i in range(20) for _ in range(1 + 2 * i)]
    texts = [f"word{row}" for row in range(len(items))]
    rows = pa.table({"response": texts, "row": range(len(texts)), "item_id": items})
    diary = tmp_path / "diary"
    stage = Stage("m1", Diary(diary=str(diary)), Resources(cpus=0.5, actors=3, batch_size=8))
    blocks = [block["item_id"].to_pylist() for block in run([stage], rows, "test", whole="item_id")]
    assert sorted(item for block in blocks for item in set(block)) == sorted(set(items)), (
        "no item in two blocks"
    )
    worker = dict(line.split() for line in diary.read_text().splitlines())
    by_item = {(item, worker[text]) for item, text in zip(items, texts, strict=True)}
    assert len(by_item) == 20 and len({process for _, process in by_item}) > 1


@dataclass(frozen=True)
class Lethal(Length):
    """Kills its process on "poison", every time."""

    def build(self):
        harmless = Length.build(self)

        def op(batch):
            if "poison" in batch["response"]:
                os._exit(1)
            return harmless(batch)

        return op


@pytest.mark.weights
def test_a_row_that_kills_every_worker_costs_itself_and_not_the_run(ray_session):
    texts, rows = ["x"] * 5 + ["poison"] + ["yy"] * 6, Spool()
    for start in (0, 8):
        rows.add(table(texts).slice(start, 8))
    done = pa.concat_tables(run([Stage("m1", Lethal(), Resources(batch_size=8))], rows, "test")).sort_by(
        "row"
    )
    assert done["m1_acoustic_grounding"].to_pylist() == [1.0] * 5 + [None] + [2.0] * 6
    assert [error and error.split(":")[0] for error in done["m1.error"].to_pylist()] == [None] * 5 + [
        "worker_died"
    ] + [None] * 6


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ConnectionError("Could not find any running Ray instance. Please specify"), "could not find any"),
        (ValueError("Invalid address format: nonsense"), "invalid address format"),
        (ConnectionError("InvalidAuthToken: Authentication token is missing"), "RAY_AUTH_TOKEN must be"),
    ],
)
def test_a_cluster_that_does_not_answer_is_told_in_one_sentence(monkeypatch, raised, told):
    import ray

    def refused(**_):
        raise raised

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refused)
    sentence = f"(?i)cluster.address: no Ray at 'auto': .*{told}.*Start its nodes"
    with pytest.raises(ResourceError, match=sentence), session(Cluster(address="auto")):
        pass
    # No cluster was asked for: not the user's to mend.
    with pytest.raises(type(raised)), session(Cluster()):
        pass
