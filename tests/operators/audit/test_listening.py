"""The listening page in a real Chromium, and its exports read back."""

import json
import math

import pytest

from operators.audio import AudioError
from operators.audit.listening import Rating, agreement, listeners, listening_page, read_exports
from operators.benchmarks.emotions import EmotionAudit
from operators.intervals import wilson_interval
from operators.tables import TableError
from pipelines.listen import read_back
from tests.browser import opened

HOSTILE = '</script><script>document.title="taken"</script><img src=x onerror=alert(1)>'


def items(kind="single_turn_emotions"):
    return EmotionAudit(kind).load().to_pylist()


def rating(listener, item, chosen, branch=0, swapped=False, plays=1):
    return Rating(listener, item, branch, swapped, chosen, plays)


def test_accuracy_and_sides_by_hand():
    given = [
        rating("anna", "a", 0), rating("anna", "b", 1, branch=1, swapped=True), rating("anna", "c", 1),
        rating("anna", "d", None), rating("ben", "a", None),
    ]  # fmt: skip
    anna, ben = listeners(given).to_pylist()
    # right where the chosen response is the branch's own: a and b; reply A was chosen for a (0, not swapped) and b (1, swapped)
    assert (anna["n_rated"], anna["n_correct"], anna["n_cannot_tell"]) == (3, 2, 1)
    assert anna["accuracy"] == pytest.approx(2 / 3) and anna["chose_first"] == pytest.approx(2 / 3)
    assert anna["wilson_low"] < 2 / 3 < anna["wilson_high"]
    assert (anna["first_low"], anna["first_high"]) == wilson_interval(2, 3)
    assert (ben["n_rated"], ben["accuracy"], ben["chose_first"]) == (0, None, None)


def test_agreement_is_alpha_with_missing_ratings():
    pytest.importorskip("krippendorff", reason="agreement is the optional extra `agreement`")
    same = [rating(who, item, chosen) for who in ("anna", "ben") for item, chosen in (("a", 0), ("b", 1))]
    assert agreement(same) == pytest.approx(1.0)
    assert agreement([*same, rating("cleo", "a", None), rating("cleo", "z", 1)]) == pytest.approx(1.0)
    # 2 x 2 values on a and b, one disagreement: observed 2/4 of pairs; expected 1 - (3*2 + 1*0)/(4*3) = 1/2; alpha = 1 - 0.5/0.5
    assert agreement([*same[:3], rating("ben", "b", 0)]) == pytest.approx(0.0)
    assert math.isnan(agreement([rating("anna", "a", 0), rating("ben", "b", 0)]))


def export(path, *ratings, page="p1", listener="anna"):
    path.write_text(json.dumps({"page": page, "listener": listener, "ratings": list(ratings)}))
    return str(path)


GOOD = {"item_id": "a", "branch": 0, "swapped": True, "place": 1, "chosen": 0, "plays": 2, "seconds": 4.5}


def test_saving_twice_counts_once_and_contradictions_are_refused(tmp_path):
    first = export(tmp_path / "1.json", GOOD)
    again = export(tmp_path / "2.json", GOOD, {**GOOD, "item_id": "b", "chosen": None})
    assert read_exports([first, again]) == [
        rating("anna", "a", 0, swapped=True, plays=2),
        rating("anna", "b", None, swapped=True, plays=2),
    ]
    other = export(tmp_path / "3.json", {**GOOD, "chosen": 1})
    with pytest.raises(TableError, match=r"3\.json, rating 1: 'anna' answered item 'a' twice"):
        read_exports([first, other])
    with pytest.raises(TableError, match="different pages"):
        read_exports([first, export(tmp_path / "4.json", GOOD, page="p2")])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no whole JSON"),
        ("[1]", "no export of the listening page"),
        ('{"ratings": []}', "hold no rating"),
        (
            json.dumps({"page": "p", "listener": "x", "ratings": [{**GOOD, "chosen": 2}]}),
            "bad_chosen: 0 or 1",
        ),
        (
            json.dumps({"page": "p", "listener": "x", "ratings": [{**GOOD, "swapped": "maybe"}]}),
            "bad_swapped",
        ),
        (json.dumps({"page": "p", "ratings": [GOOD]}), "missing_name"),
        (
            json.dumps(
                {"page": "p", "listener": "x", "ratings": [{"item_id": "a", "branch": 0, "swapped": True}]}
            ),
            "no_chosen",
        ),
    ],
)
def test_a_broken_export_names_itself(tmp_path, text, said):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(TableError, match=said) as raised:
        read_exports([str(path)])
    assert "x.json" in str(raised.value) or "no rating" in said


def test_what_an_export_does_not_say_is_no_number(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(
        "page,listener,item_id,branch,swapped,chosen,plays\np,anna,a,0,true,,\np,anna,b,1,false,1,4\n"
    )
    ratings = read_exports([str(path)])
    assert ratings == [
        rating("anna", "a", None, swapped=True, plays=None),
        rating("anna", "b", 1, branch=1, plays=4),
    ]
    (anna,) = listeners(ratings).to_pylist()
    assert (anna["n_rated"], anna["n_cannot_tell"], anna["plays_mean"]) == (1, 1, 4.0)


def test_only_clips_enter_the_page(tmp_path):
    """A benchmark may name any file; a page that is passed on must not carry off one that is no clip."""
    secret = tmp_path / "clip.wav"
    secret.write_text("a private key")
    made = items()[:1]
    made[0] = json.loads(json.dumps(made[0]).replace(made[0]["audio_uris"][0], str(secret)))
    with pytest.raises(AudioError, match=r"not_playable: .*clip\.wav"):
        listening_page(made, "b", "t")


def test_a_name_that_looks_like_markup_is_printed_as_it_is(tmp_path, capsys):
    """Rich would end at a closing tag without an opening one."""
    read_back([export(tmp_path / "1.json", GOOD, listener="[/red] anna")], tmp_path / "listen.html")
    assert "[/red] anna" in capsys.readouterr().out


def test_the_page_knows_no_emotion():
    made = items("positional_emotion")
    text = listening_page(made, "b", "t")
    block = text[text.index('id="data-listening">') + len('id="data-listening">') :]
    data = json.loads(block[: block.index("</script>")])
    assert "emotion" not in json.dumps({**data, "benchmark": ""})


@pytest.mark.weights
def test_a_listener_rates_by_keyboard_reloads_resumes_and_exports(tmp_path):
    made = items()
    made[0] |= {"responses": [{**made[0]["responses"][0], "text": HOSTILE}, made[0]["responses"][1]]}
    path = tmp_path / "listen.html"
    path.write_text(listening_page(made, "single", f"Which reply? {HOSTILE}"))
    with opened(accept_downloads=True) as browser:
        browser.goto(path.as_uri())
        browser.fill("#listener", '=anna <b>"x"</b>')
        browser.keyboard.press("Enter")
        browser.wait_for_selector("text=Case 1 of 4")
        assert browser.title().startswith("Which reply?") and browser.locator("main img, main b").count() == 0
        browser.keyboard.press("Space")
        browser.wait_for_function("!document.querySelector('#context audio').paused")
        browser.keyboard.press("a")
        browser.wait_for_function("!document.querySelectorAll('#replies audio')[0].paused")
        assert browser.evaluate("document.querySelector('#context audio').paused")
        browser.keyboard.press("1")
        browser.wait_for_selector("text=Case 2 of 4")
        browser.keyboard.press("0")
        browser.wait_for_selector("text=Case 3 of 4")

        browser.reload()
        assert browser.input_value("#listener") == '=anna <b>"x"</b>'
        browser.click("#who button")
        browser.wait_for_selector("text=Case 3 of 4")
        assert "2 of 4 cases answered" in browser.text_content("#progress")
        browser.keyboard.press("2")
        browser.keyboard.press("2")
        browser.wait_for_function("document.querySelector('#progress').textContent.startsWith('4 of 4')")
        browser.keyboard.press("ArrowLeft")
        browser.wait_for_selector("text=Case 3 of 4")
        assert browser.locator("[role=radio][aria-checked=true]").count() == 1
        saved = {}
        for kind in ("json", "csv"):
            with browser.expect_download() as download:
                browser.click(f"#save-{kind}")
            saved[kind] = tmp_path / f"export.{kind}"
            download.value.save_as(saved[kind])

    from_json, from_csv = (read_exports([str(saved[kind])]) for kind in ("json", "csv"))
    assert from_json == from_csv and len(from_json) == 4
    assert ",\"'=anna <b>" in saved["csv"].read_text()  # no spreadsheet runs it, and the reader knows
    assert {one.item_id for one in from_json} == {item["item_id"] for item in made}
    assert from_json[0].listener == '=anna <b>"x"</b>' and from_json[0].plays == 2
    assert [one.chosen is None for one in from_json] == [False, True, False, False]
    # key 1 chose reply A, key 2 reply B
    assert from_json[0].chosen == int(from_json[0].swapped)
    assert all(one.chosen == int(not one.swapped) for one in from_json[2:])


@pytest.mark.weights
def test_another_listener_gets_another_presentation_and_the_same_one_the_same(tmp_path):
    path = tmp_path / "listen.html"
    path.write_text(listening_page(items(), "single", "t"))
    drawn = (
        """name => JSON.stringify(plan(Array.from({length: 200}, (_, i) => ({id: i})), name, "p", false))"""
    )
    with opened() as browser:
        browser.goto(path.as_uri())
        anna, again, ben = (json.loads(browser.evaluate(drawn, name)) for name in ("anna", "anna", "ben"))
        both = browser.evaluate("plan([{id: 1}, {id: 2}], 'anna', 'p', true).length")
    assert anna == again != ben and both == 4
    assert sorted(one["item"] for one in anna) == list(range(200))
    for part in ("swapped", "branch"):
        assert 70 < sum(one[part] for one in anna) < 130
