"""The verdict page in a real Chromium: offline, on a phone, in the dark, with text that would like to be markup."""

import json

import pyarrow as pa
import pytest

from operators.audit.outcomes import instances, judged
from operators.audit.page import audit_page
from operators.audit.presentation import PROBES, Design, planned_calls
from operators.audit.tables import tables
from operators.benchmarks.emotions import AUDIT_ITEM
from tests.audit_toys import items_of, reply, single, wrong
from tests.browser import opened

pytestmark = pytest.mark.weights

HOSTILE = '</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """20 items and a judge that hears and knows, and always prefers branch 0's reply when it judges."""
    folder = tmp_path_factory.mktemp("page")
    items = items_of(
        "single_turn_emotions", [single(f"s{n}", text=f"{HOSTILE} {n}") for n in range(20)], folder
    )
    verdicts = []
    for item in items:
        for call in planned_calls(item, Design(PROBES, ("none",), 0)):
            number = int(item["item_id"][1:])
            lost = {"pointwise": call["branch"] == 1 or number < 5, "pairwise": number < 10}.get(
                call["probe"], False
            )
            said = json.loads(reply(call, wrong(call) if lost else call["gold"])) | {"reasoning": HOSTILE}
            verdicts.append(judged(call, HOSTILE, [{"response": json.dumps(said), "response_error": None}]))
    cells = instances(verdicts)
    table = pa.Table.from_pylist(
        [{n: item.get(n) for n in AUDIT_ITEM.names} for item in items], schema=AUDIT_ITEM
    )
    path = folder / "audit.html"
    path.write_text(audit_page(f"Audit of {HOSTILE}", table, verdicts, cells, tables(verdicts, cells, 100)))
    return path


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_it_opens_offline_and_shows_hostile_text_as_text(page_file, width, scheme):
    with opened(width=width, color_scheme=scheme) as page:
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
        assert page.title() == f"Audit of {HOSTILE}"
        assert "It hears how the user sounds and knows which reply suits that" in page.inner_text("#findings")
        assert page.locator("img").count() == 0
        assert json.loads(page.inner_text("#cases blockquote >> nth=0"))["reasoning"] == HOSTILE
        assert HOSTILE in page.inner_text("#cases li >> nth=0")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.select_option("#pick-state", "110 Potemkin failure")
        assert page.inner_text("#cases-count").startswith("25 cases")  # 20 of branch 1, 5 of branch 0
        bar = page.locator("#states figure .bar")
        assert bar.count() == 1 and "Potemkin failure 62.5%" in bar.get_attribute("aria-label")  # 25 of 40
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
        assert dark == (scheme == "dark")
