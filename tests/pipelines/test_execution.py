"""Stages on a real local Ray, with toy Specs."""

import os
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from pydantic.dataclasses import dataclass

from operators.base import Resources, Stage
from pipelines.config import Cluster
from pipelines.execution import ResourceError, cut, run, session


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


@pytest.fixture(scope="module")
def ray_session():
    with session(Cluster(num_cpus=2)):
        yield


def table(texts):
    return pa.table({"response": texts, "row": range(len(texts))})


def test_rows_come_back_once_with_errors_beside_them(ray_session):
    texts = [f"{'x' * n}" for n in range(40)] + ["bad"]
    done = pa.concat_tables(
        run([Stage("m1", Length(), Resources(batch_size=8))], table(texts), "test")
    ).sort_by("row")
    assert done["m1_acoustic_grounding"].to_pylist() == [*map(float, range(40)), None]
    assert done["m1.error"].to_pylist() == [None] * 40 + ["ValueError: bad text"]


def test_a_stage_leaves_rows_alone_that_are_not_to_do(ray_session):
    rows = table(["aa", "bad", "cccc"]).append_column("m1.todo", pa.array([True, False, True]))
    done = pa.concat_tables(run([Stage("m1", Length())], rows, "test")).sort_by("row")
    assert done["m1_acoustic_grounding"].to_pylist() == [2.0, None, 4.0]
    assert done["m1.error"].null_count == 3


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


def test_blocks_do_not_split_rows_that_belong_together():
    rows = pa.table({"clip": ["a"] * 5 + ["b"] + ["c"] * 3 + ["d"]})
    assert [block["clip"].to_pylist() for block in cut(rows, 2, "clip")] == [
        ["a"] * 5,
        ["b"] + ["c"] * 3,
        ["d"],
    ]
    assert [block.num_rows for block in cut(rows, 4, None)] == [4, 4, 2]
    assert [block.num_rows for block in cut(rows, 1, "clip")] == [4, 1, 1, 3, 1], (
        "four times as long, no longer"
    )


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
    texts = ["x"] * 5 + ["poison"] + ["yy"] * 6
    done = pa.concat_tables(run([Stage("m1", Lethal(), Resources(batch_size=8))], table(texts), "test"))
    done = done.sort_by("row")
    assert done["m1_acoustic_grounding"].to_pylist() == [1.0] * 5 + [None] + [2.0] * 6
    assert [error and error.split(":")[0] for error in done["m1.error"].to_pylist()] == [None] * 5 + [
        "worker_died"
    ] + [None] * 6
