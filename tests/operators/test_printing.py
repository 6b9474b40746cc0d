"""Untrusted text, spelled out where it could act on a terminal or in Markdown."""

from operators.printing import ABSENT, markdown_cell, printable


def test_printable_spells_out_and_shortens() -> None:
    assert printable("a\tb") == "a\\tb"
    assert printable(None) == "-"
    assert len(printable("x" * 1000)) == 80
    assert printable("\ud800") == "\\ud800"


def test_a_cell_of_markdown_holds_no_markup() -> None:
    assert markdown_cell("a|b <i>*&*</i>") == "a\\|b &lt;i&gt;\\*&amp;\\*&lt;/i&gt;"
    assert markdown_cell("x\ny") == r"x\\ny" and markdown_cell(None) == ABSENT
