from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from operators.base import ColumnError, Resources, Stage, apply, apply_by_row, check_columns


@dataclass(frozen=True)
class Halve:
    """A toy step: half of every number; refuses odd ones."""

    reads: ClassVar[tuple[str, ...]] = ("number",)
    writes: ClassVar[tuple[str, ...]] = ("half",)
    version: ClassVar[int] = 1

    def build(self):
        def op(batch):
            assert set(batch) == {"number"}, "a step must see only what it reads"
            if any(int(n) % 2 for n in batch["number"]):
                raise ValueError("odd number")
            return {"half": np.asarray(batch["number"]) // 2}

        return op


@dataclass(frozen=True)
class Liar(Halve):
    def build(self):
        return lambda batch: {"other": batch["number"]}


@dataclass(frozen=True)
class Shortener(Halve):
    def build(self):
        return lambda batch: {"half": batch["number"][:1]}


def test_apply_adds_the_written_column_and_leaves_the_input_alone():
    batch = {"number": np.array([2, 4]), "name": np.array(["a", "b"], dtype=object)}
    result = apply(Halve(), Halve().build(), batch)
    assert result["half"].tolist() == [1, 2]
    assert result["name"] is batch["name"] and "half" not in batch


@pytest.mark.parametrize("spec", [Liar(), Shortener()])
def test_apply_refuses_other_columns_or_lengths_than_declared(spec):
    with pytest.raises(ColumnError):
        apply(spec, spec.build(), {"number": np.array([2, 4])})


def test_apply_names_a_missing_column():
    with pytest.raises(ColumnError, match="number"):
        apply(Halve(), Halve().build(), {"nummer": np.array([2])})


@dataclass(frozen=True)
class Asker(Halve):
    takes_at_most: ClassVar[dict[str, float]] = {"actors": 1, "gpus": 0}


def test_a_stage_takes_no_more_of_its_resources_than_its_spec_can_use():
    given = Resources(cpus=2, gpus=1, actors=4, batch_size=64)
    assert Stage("halve", Halve(), given).resources == given
    assert Stage("ask", Asker(), given).resources == Resources(cpus=2, gpus=0, actors=1, batch_size=64)


def test_a_chain_is_checked_before_anything_runs():
    assert check_columns([Stage("halve", Halve())], ["number"]) == {"number", "half"}
    with pytest.raises(ColumnError, match="stage 'halve' reads \\['number'\\]"):
        check_columns([Stage("halve", Halve())], ["half"])


def test_a_bad_row_leaves_its_batch_mates_untouched():
    written, errors = apply_by_row(Halve(), Halve().build(), {"number": np.array([2, 3, 4, 6, 7])})
    assert errors == [None, "ValueError: odd number", None, None, "ValueError: odd number"]
    assert [written["half"][i] for i in (0, 2, 3)] == [1, 2, 3]


def test_a_fault_of_the_run_is_not_taken_for_a_bad_row():
    def op(batch):
        raise ModuleNotFoundError("no such backend")

    with pytest.raises(ModuleNotFoundError):
        apply_by_row(Halve(), op, {"number": np.array([2])})


def test_an_empty_batch_passes():
    written, errors = apply_by_row(Halve(), Halve().build(), {"number": np.array([], dtype=int)})
    assert len(written["half"]) == 0 and errors == []
