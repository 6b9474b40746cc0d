import pyarrow as pa
import pytest

from operators.audit import tables as audit
from operators.audit_states import STATE_NAMES
from operators.mugen import tables as mugen
from operators.reporting.drawing import draw
from operators.reporting.sections import MUGEN_TABLES, _table, audit_sections, mugen_sections
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


@pytest.mark.weights
def test_a_state_is_read_without_colours():
    """Bars are 240 pixels: a half is named at its middle, 60, a quarter at 150, an eighth at 195; 1/16 is too narrow."""
    masses = {"000": 0.5, "011": 0.25, "110": 0.125, "111": 0.0625}
    rows = [{"model": "a", "state": state, "mass": masses.get(state, 0.0)} for state in reversed(STATE_NAMES)]
    found, titles = {}, []
    queue = [draw(state_bars(rows))]
    for tag, attributes, children in queue:
        queue += [child for child in children if isinstance(child, list)]
        said = [child for child in children if isinstance(child, str)]
        if tag == "text" and said and said[0] in STATE_NAMES:
            found[said[0]] = float(attributes["transform"].removeprefix("translate(").split(",")[0])
        titles += said if tag == "title" else []
    assert found == {"000": 60.0, "011": 150.0, "110": 195.0}
    assert any("0.0625" in title and "111 reliable" in title for title in titles), (
        "and all of them when pointed at"
    )


def test_empty_tables_still_make_sections():
    schemas = {"summary": mugen.SUMMARY, "scaling": mugen.SCALING, "curve": mugen.CURVE, "positions": mugen.POSITIONS,
               "agreement": mugen.AGREEMENT}  # fmt: skip
    found = mugen_sections({name: schemas[name].empty_table() for name in MUGEN_TABLES}, {}, "run")
    assert [part["id"] for part in found] == ["mugen-run", "provenance-run"]
    assert found[0]["figures"] == found[0]["tables"] == []


@pytest.mark.weights
def test_a_table_shows_estimates_with_their_ends_and_says_once_what_all_rows_say():
    row = {
        "model": "a",
        "position": 0,
        "n_chosen": 4,
        "accuracy": 1.0,
        "wilson_low": 0.5,
        "wilson_high": 1.0,
        "p": 0.2,
        "n_items": 3,
    }
    rows = pa.Table.from_pylist([row, {**row, "position": 1, "n_chosen": 3}], schema=mugen.POSITIONS)
    others = {name: table.empty_table() for name, table in (
        ("summary", mugen.SUMMARY), ("scaling", mugen.SCALING), ("curve", mugen.CURVE), ("agreement", mugen.AGREEMENT),
    )}  # fmt: skip
    found = _tables_of(mugen_sections({**others, "positions": rows}, {}, "run"))[0]
    names = found["columns"]
    assert [cells[names.index("position")] for cells in found["rows"]] == [
        1,
        2,
    ]  # on the page, counted from one
    assert (
        "Wilson's over items" in found["method"]
        and "Few items in some rows (3 at the least)" in found["method"]
    )
    ends = {names[place]: [names[end] for end in pair] for place, pair in found["ends"].items()}
    assert ends == {"accuracy": ["wilson_low", "wilson_high"]}
    assert [names[place] for place in found["constant"]] == ["model", "p", "n_items"]
    assert {names[place] for place in found["reals"]} == {"accuracy", "wilson_low", "wilson_high", "p"}


def test_every_task_of_a_mugen_run_stands_in_a_table_of_its_own():
    row = dict.fromkeys(mugen.SUMMARY.names) | {
        "model": "a",
        "strategy": "direct",
        "group_kind": "task",
        "n_valid": 4,
    }
    rows = [
        {**row, "group_kind": kind, "group": name, **mugen.accuracy(right, 4), "n_correct": right}
        for kind, name, right in (("overall", "all", 3), ("task", "loudest", 2), ("task", "longest", 1))
    ]
    tables = {name: pa.table({}) for name in MUGEN_TABLES} | {
        "summary": pa.Table.from_pylist(rows, schema=mugen.SUMMARY)
    }
    overall, tasks = _tables_of(mugen_sections(tables, {}, "run"))
    at = [tasks["columns"].index(name) for name in ("group", "n_correct", "accuracy")]
    assert [[cells[place] for place in at] for cells in tasks["rows"]] == [
        ["loudest", 2, 0.5],
        ["longest", 1, 0.25],
    ]
    assert "task" in tasks["caption"] and "(4 at the least)" in tasks["method"] and len(overall["rows"]) == 1
    assert {tasks["columns"][place] for place in tasks["ends"]} == {"accuracy"}


def test_every_interval_of_a_table_on_the_page_is_shown_with_its_estimate():
    schemas = [mugen.SUMMARY, mugen.POSITIONS, mugen.AGREEMENT, audit.ACCURACY, audit.STATES, audit.RATES]
    for schema in schemas:
        row = {field.name: "x" if pa.types.is_string(field.type) else True if pa.types.is_boolean(field.type) else 1
               for field in schema}  # fmt: skip
        found = _table("", [row])
        beside = {found["columns"][place] for pair in found["ends"].values() for place in pair}
        assert beside == {name for name in schema.names if name.endswith(("_low", "_high"))}


def _tables_of(sections):
    return [table for part in sections for table in part["tables"]]


@pytest.mark.weights
def test_an_audit_shows_states_and_gap():
    cell = {"model": "a", "benchmark": "b", "kind": "k", "control": "none", "cue": "none"}
    tables = {
        "accuracy": [{**cell, "probe": "oracle", "accuracy": 0.5}],
        "states": [{**cell, "state": state, "mass": 0.125, "n_instances": 8} for state in STATE_NAMES],
        "rates": [{**cell, "protocol_gap": 0.25, "gap_low": 0.0, "gap_high": 0.5, "n_gap_items": 4}],
        "instances": [{**cell, "item_id": f"i{number // 2}"} for number in range(8)],
    }
    found = audit_sections({name: pa.Table.from_pylist(rows) for name, rows in tables.items()}, {}, "run")
    assert [figure["title"] for figure in found[0]["figures"]] == ["Diagnostic states", "Protocol gap"]
    assert [len(table["rows"]) for table in found[0]["tables"]] == [1, 8, 1]
    # Eight instances of four items: it is the items that are few.
    for table in found[0]["tables"]:
        assert "Wilson's" in table["method"] and "Few items in some rows (4 at the least)" in table["method"]
    assert "bootstraps over items" in found[0]["tables"][0]["method"]
    assert [
        told for told, figure in zip(("8 instances a bar", "over 4 items"), found[0]["figures"], strict=True)
        if told in figure["caption"]
    ] == ["8 instances a bar", "over 4 items"]  # fmt: skip
