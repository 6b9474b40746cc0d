"""The table as people meet it: terminal, file, narrow window, Markdown, and with hostile names in it."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from rich.console import Console

from operators.aggregate import SUMMARY, summarise
from operators.failures import failure_reasons
from operators.leaderboard import render, show, to_markdown
from operators.schema import METRICS
from tests.operators.test_aggregate import NO_SCORE, results


def scored(model: str, value: float, **more: object) -> dict:
    return {"model": model, **dict.fromkeys(METRICS, value), **more}


@pytest.fixture
def table() -> pa.Table:
    return results(
        *[scored("middling", 0.4, answer_index=0)] * 3,
        *[scored("best", 0.8), scored("best", 0.6)],
        *[scored("broken", 0.0, **NO_SCORE, response_error="timeout: 1", answer_index=None)] * 2,
    )


def drawn(summary: pa.Table, failures: pa.Table | None = None, width: int = 100, **console: object) -> str:
    file = io.StringIO()
    Console(file=file, width=width, **console).print(render(summary, failures))
    return file.getvalue()


def test_sorted_by_aria_with_nulls_last(table: pa.Table) -> None:
    text = drawn(summarise(table))
    assert text.index("best") < text.index("middling") < text.index("broken")
    last = next(line for line in text.splitlines() if line.startswith("broken"))
    assert last.split() == ["broken", *["-"] * 7, "0.0", "-", "-", "0"]


def test_values_deviations_and_counts_are_there(table: pa.Table) -> None:
    lines = drawn(summarise(table)).splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("best"))
    assert lines[row].split() == ["best", *["0.700*"] * 7, "100.0*", "100.0*", "0.0", "2"]
    # The sd of 0.6 and 0.8 is sqrt((0.01 + 0.01) / 1) = 0.141.
    assert lines[row + 1].split() == [*["±0.141"] * 7, "2/2", "2/2", "0-66", "0"]
    # Student's interval of two: 0.7 -+ 12.7 * 0.1, cut at 0 and 1. Wilson's of 2 of 2: from 2 / (2 + 1.96^2) = 0.342.
    assert lines[row + 2].split() == [*[".00-1.0"] * 7, "34-100", "34-100"]
    assert "Few items: the intervals are rough." in " ".join(" ".join(lines).split())


def test_accuracy_is_shown_of_all_and_of_answered() -> None:
    silent = {"answer_index": None, "response_error": "x", **NO_SCORE}
    text = drawn(summarise(results(*[{}] * 2, *[{"answer_index": 0}] * 4, *[silent] * 2)))
    assert "2/8" in text and "2/6" in text
    assert "25.0" in text and "33.3" in text


@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_line_is_too_wide_or_cut(table: pa.Table, width: int) -> None:
    text = drawn(summarise(table), failure_reasons(table), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


def test_a_thousand_items_fit() -> None:
    many = results(*[scored("a-model-with-a-long-name-7b", i / 1000) for i in range(1000)])
    text = drawn(summarise(many))
    assert "…" not in text and "1000/1000" in text


def test_a_pipe_gets_the_whole_table_without_colour_codes(table: pa.Table) -> None:
    file = io.StringIO()
    show(summarise(table), file=file)
    assert "\x1b" not in file.getvalue()
    assert "scored" in file.getvalue() and "…" not in file.getvalue()


def test_a_terminal_gets_colour_and_no_stars(table: pa.Table) -> None:
    text = drawn(summarise(table), force_terminal=True, color_system="truecolor")
    assert "\x1b[1;32m0.700" in text
    assert "*" not in text


def test_ascii_output_stays_ascii(table: pa.Table) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    show(summarise(results(scored("modèle", 0.1), scored("modèle", 0.2))), file=file)
    file.flush()
    assert "mod\\xe8le" in raw.getvalue().decode("ascii")
    assert "+-0.071" in raw.getvalue().decode("ascii")


def test_names_are_text_not_instructions() -> None:
    hostile = "[bold red]x[/] \x1b[31m\x07\r\n\u202eabc | `y` <script>"
    summary = summarise(results(scored(hostile, 0.1), scored("other", 0.2)))
    text = drawn(summary, width=200)
    assert "[bold red]x[/]" in text and "\\x1b[31m" in text and "\\u202e" in text
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(text)
    line = next(line for line in to_markdown(summary).splitlines() if "bold red" in line)
    assert "<" not in line
    assert line.replace("\\|", "").count("|") == 14, "13 cells, whatever the name holds"


def test_a_model_alone_is_the_best_of_nothing() -> None:
    text = drawn(summarise(results(scored("only", 0.5))))
    assert "*" not in text
    assert "**0.5" not in to_markdown(summarise(results(scored("only", 0.5))))


@pytest.fixture
def barely() -> pa.Table:
    """A model with a score of 0.9 on 1 of 20 rows, which answered that one rightly, beside two that have all."""
    silent = scored("lucky", 0.0, **NO_SCORE, response_error="timeout: 1", answer_index=None)
    return results(
        scored("lucky", 0.9),
        *[silent] * 19,
        *[scored("steady", 0.4 + 0.2 * (i % 2), answer_index=i % 2) for i in range(20)],
        *[scored("weaker", 0.3, answer_index=0) for _ in range(20)],
    )


def test_a_mean_over_few_rows_is_neither_first_nor_starred(barely: pa.Table) -> None:
    lines = drawn(summarise(barely)).splitlines()
    first = {line.split()[0]: index for index, line in enumerate(lines) if line and line[0] != " "}
    assert first["steady"] < first["weaker"] < first["lucky"]
    # 1 of 20 rows answered: right/answered is 1/1, which stars no more than the scores do.
    assert lines[first["lucky"]].split() == ["lucky", *["0.900"] * 7, "5.0", "100.0", "0.0", "1"]
    assert lines[first["lucky"] + 1].split() == ["(1/20)", *["n=1"] * 7, "1/20", "1/1", "0-79", "19"]
    assert lines[first["steady"]].split() == ["steady", *["0.500*"] * 7, "50.0*", "50.0*", "0.0", "20"]
    key = " ".join(" ".join(lines[first["lucky"] + 2 :]).split())
    assert "(1/9): rows with ARIA; too few to rank." in key and "n=: rows scored" in key


def test_markdown_ranks_alike(barely: pa.Table) -> None:
    lines = to_markdown(summarise(barely)).splitlines()
    assert [line.split(" ")[1] for line in lines[4:7]] == ["steady", "weaker", "lucky"]
    # Student's t of 19 degrees is 2.093: 0.5 -+ 2.093 * 0.1026 / sqrt(20) = 0.452 to 0.548.
    assert lines[4].startswith("| steady | **0.500** ±0.103 [0.452, 0.548] |")
    assert lines[6].startswith("| lucky (1/20) | 0.900 n=1 | ")
    assert "**" not in lines[6] and "100.0 (1/1)" in lines[6]


def test_half_of_the_best_coverage_is_enough() -> None:
    def partly(model: str, value: float, n: int) -> list[dict]:
        return [scored(model, value)] * n + [scored(model, value, **NO_SCORE)] * (10 - n)

    summary = summarise(results(*partly("half", 0.9, 4), *partly("less", 0.8, 3), *partly("most", 0.1, 8)))
    text = drawn(summary)
    assert text.index("half") < text.index("most") < text.index("less")
    assert "(3/10)" in text and "(4/10)" not in text
    assert "0.900*" in text and "n=4" in text and "n=8" in text


def test_a_scarce_metric_costs_no_star_in_the_other_columns() -> None:
    rare = [scored("rare", 0.5, **({} if i == 0 else {METRICS[0]: None})) for i in range(10)]
    rare[0][METRICS[0]] = 0.99
    text = drawn(summarise(results(*rare, *[scored("full", 0.4)] * 10)))
    assert "0.990\n" not in text and "0.990*" not in text
    assert "0.990" in text and "0.500*" in text


def test_trials_are_told_from_items() -> None:
    trials = [scored("m", i / 10, item_id=f"i{i % 2}", answer_index=int(i < 7)) for i in range(10)]
    text = drawn(summarise(results(*trials)))
    assert text.startswith("b: 2 items, 10 rows\n")
    assert "An item's rows are averaged first" in " ".join(text.split())
    # Items: (0.0 + 0.2 + 0.4 + 0.6 + 0.8) / 5 = 0.4 and 0.5; 7 of 10 rows right.
    assert "0.450" in text and "70.0" in text and "7/10" in text


def test_intervals_take_two_lines_where_the_window_is_narrow_and_a_digit_more_where_ends_look_alike() -> None:
    """0.5 -+ 2.262 * 0.1054 / sqrt(10) = 0.425 to 0.575. Of 10,000 values 0.500 -+ 1.960 * 0.1 / 100 = 0.498 to 0.502."""
    ten = drawn(summarise(results(*[scored("m", 0.4 + 0.2 * (i % 2)) for i in range(10)])), width=80)
    lines = ten.splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("m "))
    assert lines[row + 2].split() == [*[".42-"] * 7, "72-100", "72-100"]
    assert lines[row + 3].split() == [".58"] * 7
    many = {"low": 0.49804, "high": 0.50196}
    (one,) = [row for row in summarise(results(scored("m", 0.4), scored("m", 0.6))).to_pylist() if row["group"] == "all"]  # fmt: skip
    one |= {f"{METRICS[0]}_{end}": value for end, value in many.items()}
    said = drawn(pa.Table.from_pylist([one], schema=SUMMARY)).split()
    assert ".498-" in said and ".502" in said


def test_failures_stand_below_by_reason(table: pa.Table) -> None:
    text = drawn(summarise(table), failure_reasons(table))
    line = next(line for line in text.splitlines() if "timeout" in line)
    assert line.split() == ["broken", "response", "timeout", "2", "i5"]
    assert "by reason" not in drawn(summarise(results({})), failure_reasons(results({})))


def test_what_befell_all_metrics_alike_is_one_line() -> None:
    reasons = {f"{metric}_reason": "no_response" for metric in METRICS}
    table = results({**NO_SCORE, **reasons, "answer_index": None, "response_error": "timeout"})
    text = drawn(summarise(table), failure_reasons(table))
    assert "m1 m2 m3 m4 m5 m6" in text
    assert text.count("no_response") == 1


def test_many_kinds_of_failure_are_summed_up() -> None:
    table = results(*({METRICS[0]: None, f"{METRICS[0]}_reason": f"reason{i}"} for i in range(25)))
    assert "and 5 rarer kinds" in drawn(summarise(table), failure_reasons(table))


def test_each_benchmark_has_its_own_block() -> None:
    text = drawn(summarise(results({"benchmark": "mmau"}, {"benchmark": "mmar"})))
    assert text.index("mmar: 1 item\n") < text.index("mmau: 1 item\n")
    assert (
        to_markdown(summarise(results({"benchmark": "mmau"}, {"benchmark": "mmar"}))).count("| Model |") == 2
    )


def test_markdown_is_a_table_of_thirteen_columns(table: pa.Table) -> None:
    lines = to_markdown(summarise(table)).splitlines()
    assert lines[0] == "**b**: 2 to 3 items"
    assert {line.count("|") for line in lines[2:-2]} == {14}
    assert lines[-1].startswith("Bold: best of its column. Beside the values: ±sd or right/all")
    assert lines[4].startswith("| best | **0.700** ±0.141 [0.000, 1.000] |")
    assert "100.0** (2/2) [34.2, 100.0]" in lines[4]


def test_no_rows_say_so() -> None:
    assert drawn(summarise(results())).strip() == "No rows to show."
    assert to_markdown(summarise(results())) == "No rows to show.\n"
