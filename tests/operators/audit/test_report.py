"""What is printed and what the page is given: the same numbers, untrusted names harmless."""

import base64
import gzip
import io
import json
import re

import pyarrow as pa
import pytest

from operators.audit.outcomes import instances
from operators.audit.page import audit_page
from operators.audit.presentation import PROBES, Design, planned_calls
from operators.audit.report import percent, points, show
from operators.audit.tables import tables
from operators.benchmarks.emotions import AUDIT_ITEM
from tests.audit_toys import items_of, judge, single

EVIL = "\x1b[31mevil[/bold]</script>\u202e"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A judge that hears and knows and cannot put the two together; of its items one was refused."""
    items = items_of(
        "single_turn_emotions", [single(f"s{n}") for n in range(6)], tmp_path_factory.mktemp("audit")
    )
    calls = [call for item in items for call in planned_calls(item, Design(PROBES, ("none", "hard"), 0))]

    def right(call):
        if (call["probe"], call["cue"], call["item_id"]) == ("pointwise", "hard", "s0"):
            return None
        return call["branch"] == 0 if call["probe"] == "pointwise" else True

    verdicts = judge(calls, right, EVIL)
    cells = instances(verdicts)
    refused = {name: None for name in AUDIT_ITEM.names} | {
        "item_id": "bad",
        "item_error": f"no_audio: {EVIL}",
    }
    table = pa.Table.from_pylist(
        [{n: item.get(n) for n in AUDIT_ITEM.names} for item in items] + [refused], schema=AUDIT_ITEM
    )
    return table, verdicts, cells, tables(verdicts, cells, 100)


def test_the_printed_tables_hold_the_numbers(made):
    out = io.StringIO()
    show(made[3], out)
    text = out.getvalue()
    assert "\x1b" not in text and "\u202e" not in text
    assert "50.0" in text and "6/12" in text and "5/10" in text and "2 null" in text
    assert "110 Potemkin failure" in text and "Potemkin. It hears how the user sounds" not in text
    assert "Contrast-dependent. It can match voices and replies" in text
    assert "+50.0" in text  # the protocol gap: 6 of 6 less 6 of 12


def test_numbers_as_they_are_shown():
    assert (percent(0.9101), percent(None), percent(1 / 3, 2)) == ("91.0", "-", "33.33")
    assert points(0.257, 0.2014, 0.312) == "+25.7\n20.1 to 31.2"
    assert points(-0.1, None, None) == "-10.0" and points(None, None, None) == "-"


def test_the_page_carries_the_same_numbers_as_data_and_hostile_text_only_there(made):
    table, verdicts, cells, found = made
    text = audit_page(f"Audit of {EVIL}", table, verdicts, cells, found)
    assert text.count("</script>") == text.count("<script")
    data = json.loads(re.search(r'<script type="application/json" id="data-audit">(.*?)</script>', text)[1])
    assert data["refused"] == [f"bad: no_audio: {EVIL}"]
    assert [row["cue"] for row in data["accuracy"]] == ["none", "hard"]
    assert (
        data["rates"][0]["gap"] == 0.5 and data["states"][0]["n"] == 12 and data["states"][1]["excluded"] == 2
    )
    assert {one["diagnosis"] for one in data["findings"]} == {"contrast"}
    packed = re.search(r'id="data-cases">(.*?)</script>', text)[1]
    cases = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert len(cases) == 6 + 7  # every second branch; under the hard cue one right branch is unreadable too
    lost = [one for one in cases if one["state"] == "11?"]
    assert len(lost) == 2 and all(
        one["said"] == "no idea" and one["reason"].startswith("no_json") for one in lost
    )
    wrong = next(one for one in cases if one["state"] == "110")
    assert wrong["right"] == "A reply to someone sad." and wrong["branch"] == 1
