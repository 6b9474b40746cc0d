"""Tables as Parquet, CSV, Markdown and LaTeX: exact where machines read, harmless where people paste."""

import csv
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.export import latex_cell, number, to_csv, to_latex, to_markdown, write_all

HOSTILE = [
    "=cmd|'/c calc'!A1",
    "a|b <script>x</script>",
    r"\input{/etc/passwd} 50% & $x_1$",
    "-1+2",
    "two\nlines",
    None,
]
TABLE = pa.table({"name": HOSTILE, "value": [1 / 3, 1e-7, -0.5, 2.0, None, 0.0], "n": [1, 2, 3, 4, 5, None]})


def test_parquet_and_csv_keep_every_digit(tmp_path):
    write_all(tmp_path / "new", "t", TABLE)
    assert pq.read_table(tmp_path / "new" / "t.parquet").equals(TABLE)
    rows = list(
        csv.DictReader(io.StringIO((tmp_path / "new" / "t.csv").read_text(encoding="utf-8"), newline=""))
    )
    assert [float(row["value"]) if row["value"] else None for row in rows] == TABLE["value"].to_pylist()
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [
        "t.csv",
        "t.md",
        "t.parquet",
        "t.tex",
    ]


def test_no_cell_is_a_formula():
    rows = list(csv.reader(io.StringIO(to_csv(TABLE).decode(), newline="")))[1:]
    assert [row[0] for row in rows][:4] == [f"'{HOSTILE[0]}", HOSTILE[1], HOSTILE[2], f"'{HOSTILE[3]}"]
    assert rows[2][1] == "-0.5", "a negative number is no formula"


def test_markdown_shows_names_as_they_are():
    text = to_markdown(TABLE)
    lines = text.splitlines()
    assert len(lines) == 2 + len(HOSTILE) and all(line.count(" | ") == 2 for line in lines)
    assert lines[1] == "| --- | ---: | ---: |" and "<script>" not in text and "| 0.333 | 1 |" in lines[2]


def test_latex_runs_no_command():
    text = to_latex(TABLE)
    assert r"\input{" not in text and r"\textbackslash{}input\{/etc/passwd\} 50\% \& \$x\_1\$" in text
    body = text.split(r"\midrule" + "\n")[1].split(r"\bottomrule")[0]
    assert body.count(r" \\") == len(HOSTILE) == body.count("\n")
    assert "& $-$0.500 & 3" in text, "a minus sign, not a hyphen"
    assert text.startswith("\\begin{tabular}{lrr}\n\\toprule\nname & value & n")


@pytest.mark.parametrize("value, shown", [(None, "-"), (float("nan"), "-"), (3, "3"), (0.12345, "0.123"), (0.0, "0.000"),
                                          (0.0001, "1.0e-04"), (-2.5, "-2.500")])  # fmt: skip
def test_numbers_for_the_eye(value, shown):
    assert number(value) == shown


def test_every_special_character_of_latex_is_escaped():
    assert latex_cell("#{}~^") == r"\#\{\}\textasciitilde{}\textasciicircum{}"
