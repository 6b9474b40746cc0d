import pyarrow as pa
import pytest

from operators.audit_states import STATE_NAMES
from operators.mugen import tables as mugen
from operators.reporting.sections import MUGEN_TABLES, audit_sections, mugen_sections
from operators.reporting.series_charts import accuracy_lines, position_bars, series_names, state_bars


def point(x, accuracy, **about):
    return {"model": "a", "n_trials": x, "accuracy": accuracy, "wilson_low": 0.1, "wilson_high": 0.9, **about}


def test_a_series_is_named_by_what_differs():
    rows = [{"model": "a", "prompt": "p", "permuted": True}, {"model": "a", "prompt": "p", "permuted": False}]
    assert series_names(rows, ("prompt", "permuted")) == ["a, permuted", "a, fixed order"]
    assert series_names(rows[:1], ("prompt", "permuted")) == ["a"]
    judges = [
        {"model": "random", "control": "random", "cue": "hard"},
        {"model": "a", "control": "none", "cue": "none"},
    ]
    assert series_names(judges, ("control", "cue")) == ["random, cue hard", "a, none, cue none"]


def test_one_point_is_no_curve_and_a_missing_accuracy_is_left_out():
    assert accuracy_lines([point(1, 0.5)], (), "n_trials", "t") is None
    spec = accuracy_lines([point(1, 0.5), point(2, None), point(3, 0.75)], (), "n_trials", "t")
    assert [value["accuracy"] for value in spec["data"]["values"]] == [0.5, 0.75]


def test_positions_are_counted_from_one_on_the_page():
    rows = [{"model": "a", "position": place, "n_chosen": 4, "n_expected": 3.0} for place in range(2)]
    assert [value["position"] for value in position_bars(rows, ())["data"]["values"]] == [1, 2]


def test_states_are_stacked_in_their_order():
    rows = [{"model": "a", "state": state, "mass": 0.125} for state in reversed(STATE_NAMES)]
    values = state_bars(rows)["data"]["values"]
    assert [value["order"] for value in values] == list(range(7, -1, -1))
    assert sum(value["mass"] for value in values) == 1.0


def test_empty_tables_still_make_sections():
    schemas = {"summary": mugen.SUMMARY, "scaling": mugen.SCALING, "curve": mugen.CURVE, "positions": mugen.POSITIONS,
               "agreement": mugen.AGREEMENT}  # fmt: skip
    found = mugen_sections({name: schemas[name].empty_table() for name in MUGEN_TABLES}, {}, "run")
    assert [part["id"] for part in found] == ["mugen-run", "provenance-run"]
    assert found[0]["figures"] == found[0]["tables"] == []


@pytest.mark.weights
def test_an_audit_shows_states_and_gap():
    cell = {"model": "a", "benchmark": "b", "kind": "k", "control": "none", "cue": "none"}
    tables = {
        "accuracy": [{**cell, "probe": "oracle", "accuracy": 0.5}],
        "states": [{**cell, "state": state, "mass": 0.125} for state in STATE_NAMES],
        "rates": [{**cell, "protocol_gap": 0.25, "gap_low": 0.0, "gap_high": 0.5}],
    }
    found = audit_sections({name: pa.Table.from_pylist(rows) for name, rows in tables.items()}, {}, "run")
    assert [figure["title"] for figure in found[0]["figures"]] == ["Diagnostic states", "Protocol gap"]
    assert [len(table["rows"]) for table in found[0]["tables"]] == [1, 8, 1]
