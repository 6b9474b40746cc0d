"""`python -m pipelines.report` on runs of toys, and its page in a real browser."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from hydra import compose, initialize_config_dir

from operators.aggregate import MEASURES, finish_rows, summarise
from operators.frames import with_columns
from operators.schema import METRICS, result_schema
from operators.tables import TableError
from pipelines.config import CONF, ConfigError
from pipelines.report import main
from tests.browser import opened
from tests.operators.test_tables import raw
from tests.pipelines.cli import ROOT
from tests.report_toys import HOSTILE, results, row, write_audit_run, write_mugen_run, write_run


def report(*overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        main(compose("report", overrides=list(overrides)))


def page_of(folder, rows, *overrides, **record):
    write_run(folder, rows, **record)
    report(f"run={folder}", *overrides)
    return (folder / "report.html").as_uri()


@pytest.mark.weights
def test_two_runs_with_other_scorers_are_refused_unless_forced(tmp_path, capsys):
    a = write_run(tmp_path / "a", results(models=("a", "b")))
    b = write_run(tmp_path / "b", results(models=("c", "d")), fingerprints={"m1": "f" * 16})
    with pytest.raises(ConfigError, match=r"m1: a 0123456789abcdef, b f{16}(.|\n)*force=true"):
        report(f"run=[{a},{b}]", f"out={tmp_path / 'r.html'}")
    report(f"run=[{a},{b}]", f"out={tmp_path / 'r.html'}", "force=true")
    assert "their numbers do not compare" in (tmp_path / "r.html").read_text()
    assert "open" in capsys.readouterr().out


@pytest.mark.weights
def test_a_row_that_two_runs_share_is_kept_once_and_two_results_for_one_row_are_refused(tmp_path):
    a = write_run(tmp_path / "a", results(models=("yardstick", "a")))
    b = write_run(tmp_path / "b", results(models=("yardstick", "b")))
    report(f"run=[{a},{b}]")
    data = embedded_json((a / "report.html").read_text(), "overview")
    counts = {entry["model"]: entry["n_rows"] for entry in data["boards"][0]["models"]}
    assert counts == {"yardstick": 12, "a": 12, "b": 12}
    c = write_run(tmp_path / "c", results(models=("yardstick", "c"), text="another answer"))
    with pytest.raises(TableError, match="another name"):
        report(f"run=[{a},{c}]")


def test_two_folders_of_one_name_are_refused(tmp_path):
    """Each would stand for the other in provenance and cost."""
    runs = [write_run(tmp_path / place / "run", results(models=(place,))) for place in ("a", "b")]
    with pytest.raises(ConfigError, match="two folders have one name"):
        report(f"run=[{runs[0]},{runs[1]}]")


def test_a_run_without_rows_is_no_report(tmp_path):
    run = write_run(tmp_path / "run", result_schema().empty_table())
    with pytest.raises(TableError, match="has no rows"):
        report(f"run={run}")


@pytest.mark.weights
def test_runs_whose_rows_are_all_shared_and_a_lost_record_still_make_a_page(tmp_path):
    a, b = (write_run(tmp_path / name, results()) for name in "ab")
    report(f"run=[{a},{b}]")
    (b / "run.json").unlink()
    report(f"run={b}")
    assert "fingerprints" in embedded_json((b / "report.html").read_text(), "overview")["runs"][0]


@pytest.mark.weights
@pytest.mark.parametrize("command", ["report", "annotate"])
def test_the_help_shows_examples_and_fields(command):
    done = subprocess.run(
        [sys.executable, "-m", f"pipelines.{command}", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0
    assert f"python -m pipelines.{command} run=" in done.stdout
    assert "embed_mb: " in done.stdout


def embedded_json(text, name):
    return json.loads(text.split(f'id="data-{name}">')[1].split("</script>")[0])


@pytest.mark.weights
def test_every_number_in_the_page_is_that_of_the_summary_to_the_last_bit(tmp_path):
    """Rows as a run may leave them, in pieces and not item by item: summed in another order, last digits would differ."""
    sorted_rows = results(n_items=60, models=("b", "a", "c"))
    order = np.random.default_rng(0).permutation(len(sorted_rows))
    rows = pa.concat_tables([sorted_rows.take(part) for part in np.array_split(order, 7)])
    page_of(tmp_path / "run", rows)
    data = embedded_json((tmp_path / "run" / "report.html").read_text(), "overview")
    kept = {(row["model"], row["group_kind"], row["group"]): row for row in summarise(rows).to_pylist()}
    shown = [(entry, kept[entry["model"], "overall", "all"]) for entry in data["boards"][0]["models"]]
    for block in data["categories"]:
        for group in block["groups"]:
            shown += [
                (entry, kept[entry["model"], block["kind"], group["group"]]) for entry in group["models"]
            ]
    assert len(shown) == len(kept) == 3 * (1 + 3)  # overall and three categories
    for entry, line in shown:
        for name, cell in entry["cells"].items():
            if name in MEASURES:
                parts = ("mean", "sd", "low", "high", "n_items", "n_scored")
                found = [cell[part] for part in ("value", *parts[1:5], "n")]
                assert found == [line[f"{name}_{part}"] for part in parts]
            else:
                assert (cell["value"], cell["low"], cell["high"]) == (
                    line[name],
                    line[f"{name}_low"],
                    line[f"{name}_high"],
                )


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["run=nowhere"], "there is no such folder"),
        (["run=[]"], "the folder of a run"),
        (["run=[tests,tests]"], "stands there twice"),
        (["run=tests"], "not the folder of a finished run"),
    ],
)
def test_what_cannot_be_reported_is_named(overrides, message, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises((TableError, ConfigError), match=message) as caught:
        report(*overrides)
    assert "\n" not in str(caught.value)


@pytest.mark.weights
@pytest.mark.parametrize(
    ("override", "message"), [("run=nowhere", "there is no such folder"), ("rum=x", "did you mean 'run'")]
)
def test_what_cannot_be_reported_is_said_in_one_line(override, message):
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.report", override], cwd=ROOT, capture_output=True, text=True, timeout=120
    )  # fmt: skip
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def count(tab):
    return tab.inner_text("#count")


def ready(tab, uri):
    tab.goto(uri)
    tab.wait_for_selector("body[data-ready]", state="attached", timeout=60_000)


@pytest.mark.weights
def test_a_reader_filters_sorts_opens_and_plays(tmp_path):
    soundfile.write(tmp_path / "50% bark.wav", np.zeros(800), 8000)
    clip = {"audio_uris": [str(tmp_path / "50% bark.wav")], "audio_hashes": ["h"], "audio_seconds": [0.1]}
    lost = {"audio_uris": [str(tmp_path / "lost.wav")], "audio_hashes": [None], "audio_seconds": [None]}
    rows = results().to_pylist()
    for place, one in enumerate(rows):
        one |= clip if place < 4 else lost
    uri = page_of(tmp_path / "run", finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))
    with opened() as tab:
        ready(tab, uri)
        assert count(tab) == "24 of 24 responses."
        tab.fill("#q", "item-3")
        assert count(tab).startswith("2 of 24")
        tab.click("#clear")
        tab.select_option("#outcome", "none")
        assert count(tab).startswith("2 of 24")  # no answer, and no response
        tab.select_option("#reason", "no_choice_named")
        assert count(tab).startswith("1 of 24")
        tab.click("#clear")
        tab.select_option("#model", "sloppy")
        tab.select_option("#sort", "aria down")
        best = max(
            (r for r in rows if r["model"] == "sloppy" and r["aria"] is not None), key=lambda r: r["aria"]
        )
        assert best["item_id"] in tab.locator(".row").first.inner_text()
        tab.locator(".row").first.click()
        tab.locator("#detail h3", has_text=best["item_id"]).wait_for()
        assert f"item={best['item_id']}" in tab.evaluate("location.hash")
        tab.fill("#q", "reasoning of item-7")
        assert count(tab).startswith("0 of 24")
        tab.check("#deep")
        tab.locator("#count", has_text="1 of 24 responses").wait_for()
        tab.click("#clear")
        tab.evaluate("location.hash = 'item=item-0&model=careful'")
        tab.locator("#detail h3", has_text="item-0").wait_for()
        tab.locator("#detail audio[src]").wait_for(state="attached")
        tab.evaluate("document.querySelector('#detail audio').play()")
        assert tab.evaluate("document.querySelector('#detail audio').duration") == pytest.approx(0.1)
        tab.evaluate("document.querySelector('#detail audio').dispatchEvent(new Event('error'))")
        assert "the file 50% bark.wav is missing beside this page" in tab.inner_text("#detail")
        tab.evaluate("location.hash = 'item=item-9&model=careful'")
        tab.locator("#detail h3", has_text="item-9").wait_for()
        assert "there is no file" in tab.inner_text("#detail")


@pytest.mark.weights
def test_a_deep_link_opens_its_response_with_all_that_was_seen(tmp_path):
    uri = page_of(tmp_path / "run", results())
    with opened() as tab:
        ready(tab, f"{uri}#item=item-2&model=careful")
        said = tab.inner_text("#detail")
        for part in (
            "item-2, careful",
            "right answer",
            "extracted",
            "tag_exact",
            "bark",
            "-9.5",
            "perception ⊨ analysis",
        ):
            assert part in said, part  # ppl 40 -> 30.5 is a change of -9.5
        assert tab.locator("#detail .response .slot").count() == 4
        assert tab.inner_text("#detail .response .slot.answer") == "dog"
        tab.locator("#detail a", has_text="sloppy").click()
        tab.locator("#detail h3", has_text="item-2, sloppy").wait_for()
        tab.evaluate("location.hash = 'item=no-such-item'")
        tab.locator("#count", has_text="no response to no-such-item").wait_for()


@pytest.mark.weights
def test_odd_details_and_items_without_a_category_are_read_and_found(tmp_path):
    """Details of another make: no JSON, infinite numbers, a word where a list belongs."""
    odd = ('{"entities": ["bark"], "similarities": [1e999]}', '{"entities": "ab"}', "{cut <b>")
    rows = [row(f"q{n}", "a", n, "t", category=None if n == 1 else "sound", m1_acoustic_grounding_details=text)
            for n, text in enumerate(odd)]  # fmt: skip
    uri = page_of(
        tmp_path / "run",
        finish_rows(pa.Table.from_pylist(rows, schema=result_schema())),
        wall_seconds={"score": float("inf")},
    )
    with opened() as tab:
        ready(tab, uri)
        assert "2 details of metrics are no JSON of finite numbers" in tab.inner_text("#about")
        for n, text in enumerate(odd):
            tab.evaluate(f"location.hash = 'item=q{n}'")
            tab.locator("#detail h3", has_text=f"q{n}").wait_for()
            said = tab.inner_text("#detail")
            assert f"These details cannot be read: {text}".replace(" ", "") in said.replace(" ", "")
            assert "perception ⊨ analysis" in said, "the other metrics are shown"
        tab.select_option("#category", "(none)")
        assert count(tab) == "1 of 3 responses." and "q1" in tab.locator(".row").first.inner_text()
        tab.select_option("#category", "sound")
        assert count(tab) == "2 of 3 responses."


@pytest.mark.weights
def test_the_example_of_a_failure_is_the_response_that_failed(tmp_path):
    """Two benchmarks with the same item ids, two trials each: one response of eight has no answer."""
    silent = {"answer_index": None, "answer_stage": None, "answer_reason": "no_choice_named"}
    rows = [
        row(f"q{n}", "a", n, "t", benchmark=benchmark, trial=trial,
            **(silent if (benchmark, n, trial) == ("second", 1, 1) else {}))
        for benchmark in ("first", "second") for n in range(2) for trial in range(2)
    ]  # fmt: skip
    uri = page_of(tmp_path / "run", finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))
    with opened() as tab:
        ready(tab, uri)
        tab.locator("#failures a").click()
        tab.locator("#detail h3", has_text="q1, a").wait_for()
        said = tab.inner_text("#detail")
        assert "second · music · trial 1" in said
        assert "no_choice_named" in said


@pytest.mark.weights
def test_slots_of_one_repeated_text_are_found_however_long(tmp_path):
    """The perception's text occurs at every place of the analysis, or nearly does: a megabyte each, and the page answers."""
    responses = {
        "same": {"perception": ("ha " * 160_000).strip(), "analysis": ("ha " * 200_000).strip()},
        "nearly": {"perception": "a" * 300_000 + "b", "analysis": "a" * 600_000},
    }
    rows = [
        row(item, "m", 1, "t", **slots, reasoning="so", answer="dog",
            response=f"[PERCEPTION] {slots['perception']}\n[ANALYSIS] {slots['analysis']}\n[REASONING] so\n[ANSWER] dog")
        for item, slots in responses.items()
    ]  # fmt: skip
    uri = page_of(tmp_path / "run", finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))
    with opened() as tab:
        ready(tab, uri)
        for item, slots in responses.items():
            tab.evaluate(f"location.hash = 'item={item}'")
            tab.locator("#detail h3", has_text=item).wait_for()
            tab.locator("#detail button", has_text="Show all").click()
            found = tab.locator("#detail .response .slot").evaluate_all("all => all.map((one) => [one.title, one.textContent.length])")  # fmt: skip
            wanted = {**{name: len(text) for name, text in slots.items()}, "reasoning": 2, "answer": 3}
            assert dict(found) == wanted
            pairs = tab.locator("#detail .pair").first.inner_text()
            assert pairs.count("…") == 2, "both slots are cut, and say so"


@pytest.mark.weights
def test_the_cards_of_m4_and_m5_show_what_was_scored(tmp_path):
    """M4 compares the reasoning with the perception where there is no analysis; perplexities 40 and 20: -20, or log 1/2."""
    found = {"ppl_p": 40.0, "ppl_pa": None, "ppl_par": 20.0, "truncated": [], "answer_tokens": 1}
    rows = finish_rows(pa.Table.from_pylist(
        [row("i", "a", 0, "t", analysis=None, m4_step_causality_details=json.dumps(found))], schema=result_schema()))  # fmt: skip
    uris = {
        ("difference", "whole"): page_of(
            tmp_path / "raw", rows, specs={"m4": {"form": "difference"}, "m5": {"granularity": "whole"}}
        ),
        ("log_ratio", "sentence_minmax"): page_of(
            tmp_path / "log",
            rows,
            specs={"m4": {"form": "log_ratio"}, "m5": {"granularity": "sentence_minmax"}},
        ),
    }
    with opened() as tab:
        for (form, granularity), uri in uris.items():
            ready(tab, f"{uri}#item=i")
            said = tab.inner_text("#detail")
            card = said[said.index("M4 ") : said.index("M5 ")].split()
            assert card[card.index("R") + 1 :][:2] == ["20.0", "-20.0" if form == "difference" else "-0.693"]
            assert ("change of its logarithm" in said) == (form == "log_ratio")
            assert ("scored by sentence" in said) == (granularity == "sentence_minmax")


@pytest.mark.weights
def test_hostile_responses_names_and_categories_stay_text(tmp_path):
    groups = json.dumps({"kind": f"grouped {HOSTILE}"})
    rows = [row(f"id {n} {HOSTILE}", f"{model} {HOSTILE}", n, HOSTILE, category=HOSTILE, groups=groups, answer_reason=HOSTILE)
            for n in range(3) for model in "abc"]  # fmt: skip
    long, broken = row("long", "a", 1, "x" * 1_000_000), row("broken", "a", 1, "t")
    made = finish_rows(pa.Table.from_pylist([*rows, long, broken], schema=result_schema()))
    said = [text.encode() for text in made["response"].to_pylist()]
    made = with_columns(made, {"response": raw(*said[:-1], b"\xff\xfe</script>" + said[-1])})
    uri = page_of(tmp_path / "run", made)
    text = (tmp_path / "run" / "report.html").read_text()
    assert "<img" not in text
    assert "<script>window" not in text
    with opened() as tab:
        ready(tab, uri)
        for place in range(2):
            tab.locator(".row").nth(place).click()
            tab.locator("#detail .response").wait_for()
            assert "<script>" in tab.inner_text("#detail .response")
            assert "grouped </script>" in tab.inner_text("#detail")
        assert tab.evaluate("window.owned") is None
        assert tab.locator("img").count() == 0
        tab.fill("#q", "grouped </script>")
        assert count(tab) == "9 of 11 responses.", "an item is found by its groups"
        assert "1 row holds text that is not UTF-8: \ufffd stands for" in tab.inner_text("#about")
        tab.evaluate("location.hash = 'item=broken'")
        tab.locator("#detail", has_text="This row holds text that is not UTF-8 (response)").wait_for()
        assert "\ufffd\ufffd</script>[PERCEPTION]" in tab.inner_text("#detail .response").replace("\n", "")
        tab.evaluate("location.hash = 'item=long'")
        tab.locator("#detail button", has_text="Show all").wait_for()
        assert len(tab.inner_text("#detail .response")) <= 20_000
        tab.locator("#detail button", has_text="Show all").click()
        assert len(tab.locator("#detail .response").text_content()) > 3_000_000
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.weights
def test_trials_and_verdicts_are_browsed_beside_responses(tmp_path):
    """Three browsers in one page: each filters, opens and links its own rows, and nothing that was said can run."""
    runs = [write_run(tmp_path / "aria", results()), write_mugen_run(tmp_path / "mugen", HOSTILE)]
    runs.append(write_audit_run(tmp_path / "audit", HOSTILE))
    report(f"run=[{','.join(map(str, runs))}]", f"out={tmp_path / 'page.html'}")
    with opened() as tab:
        ready(tab, (tmp_path / "page.html").as_uri())
        assert count(tab) == "24 of 24 responses."
        said = {key: tab.inner_text(f"section[id^={key}]") for key in ("categories", "mugen", "audit")}
        assert (
            "small print: 95% intervals over items (Wilson's), and n, the rows that have the value. Few items in some "
            "groups (4 at the least)" in said["categories"]
        )
        tab.select_option("#category-measure", "aria")
        assert "intervals over items (Student's, cut at 0 and 1), and n, the rows" in tab.inner_text(
            "#categories"
        )
        assert (
            "half of Wald's" in said["mugen"] and "Few items in some rows (2 at the least)" in said["mugen"]
        )
        assert "Wilson's 95% intervals over 2 items" in said["mugen"]
        assert "percentile bootstraps over items" in said["audit"] and "(1 at the least)" in said["audit"]
        assert tab.inner_text("#count-1") == "6 of 6 trials."
        tab.select_option(
            "#outcome-1", "right"
        )  # of the orders 012, 201, 120 position 2 is clip 1 in the second
        assert tab.inner_text("#count-1") == "2 of 6 trials."
        tab.locator("#rows-1 .row").first.click()
        tab.locator("#detail-1 h3", has_text="q0").wait_for()
        said = tab.inner_text("#detail-1")
        for part in (
            "Which is loudest? </script>",
            "Audio 1: </script>",
            "chosen position\n3",
            "which is\nclip 2",
        ):
            assert part in said, part
        presented = tab.locator("#detail-1 .presented li")
        assert [line.split()[1] for line in presented.all_inner_texts()] == ["3", "1", "2"]
        assert "chosen" in presented.nth(2).inner_text() and "right answer" in presented.nth(2).inner_text()
        assert "apsc\tclip 2" in said or "clip 3 (tie)" in said
        link = tab.evaluate("location.hash")
        assert "run=mugen" in link and "trial=1" in link
        assert count(tab) == "24 of 24 responses.", "a browser does not filter another"

        tab.fill("#q-2", "s1")
        assert (
            tab.inner_text("#count-2") == "14 of 14 verdicts."
        )  # 2 cues x (3 probes x 2 voices + 1 pairwise)
        tab.select_option("#outcome-2", "wrong")
        assert tab.inner_text("#count-2") == "2 of 14 verdicts."
        tab.locator("#rows-2 .row").first.click()
        tab.locator("#detail-2 h3", has_text="s1").wait_for()
        said = tab.inner_text("#detail-2")
        for part in (
            "Voice 2\nheard here",
            "user, sad: </script>",
            "011 shortcut-like success",
            "Reply to voice 1",
        ):
            assert part.replace("\n", "") in said.replace("\n", ""), part
        tab.locator("#detail-2 a", has_text="pairwise, cue soft").click()
        tab.locator("#detail-2 .soft", has_text="pairwise, cue soft").wait_for()
        tab.locator("#detail-2 audio[src]").first.wait_for(state="attached")

        ready(tab, (tmp_path / "page.html").as_uri() + link)
        tab.locator("#detail-1 h3", has_text="q0").wait_for()
        assert tab.evaluate("window.owned") is None and tab.locator("img").count() == 0
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_run_that_kept_no_items_is_browsed_without_questions_and_broken_text_of_a_trial_is_told(tmp_path):
    run = write_mugen_run(tmp_path / "mugen")
    (run / "items.parquet").unlink()
    trials = pq.read_table(run / "trials.parquet")
    said = [text and text.encode() for text in trials["response"].to_pylist()]
    pq.write_table(with_columns(trials, {"response": raw(b"\xff1", *said[1:])}), run / "trials.parquet")
    report(f"run={run}")
    told = embedded_json((run / "report.html").read_text(), "about")["told"]
    assert "1 row holds text that is not UTF-8" in told
    assert embedded_json((run / "report.html").read_text(), "browsers") == [
        {"block": "index-0", "title": "Every answer of mugen"}
    ]


@pytest.mark.parametrize("write", [write_mugen_run, write_audit_run])
def test_a_run_from_before_counts_and_intervals_is_still_shown(tmp_path, write):
    run = write(tmp_path / "old")
    newer = {"n_items", "n_valid", "n_instances", "n_gap_items", "wilson_low", "wilson_high", "usage", "tie", "finish_reason",
             "n_candidates", "n_expected", "gain_p", "gap_low", "gap_high"}  # fmt: skip
    for file in run.glob("*.parquet"):
        table = pq.read_table(file)
        pq.write_table(table.drop_columns([name for name in table.column_names if name in newer]), file)
    report(f"run={run}")
    (section, _) = embedded_json((run / "report.html").read_text(), "sections")
    captions = " ".join(figure["caption"] for figure in section["figures"])
    assert section["tables"] and "that the run did not count" in captions and "None" not in captions


@pytest.mark.weights
def test_eighteen_thousand_rows_are_a_list_of_a_few_elements(tmp_path):
    models = [f"model-{letter}" for letter in "ABCDEFGHI"]
    rows = [row(f"item-{n:04d}", model, n, "a bark") for n in range(2000) for model in models]
    uri = page_of(tmp_path / "run", finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))
    with opened() as tab:
        ready(tab, uri)
        assert count(tab) == "18,000 of 18,000 responses."
        assert tab.locator(".row").count() < 40
        tab.fill("#q", "item-199")
        assert count(tab).startswith("90 of 18,000")
        tab.click("#clear")
        tab.focus("#list")
        tab.keyboard.press("End")
        tab.locator("#detail h3", has_text="item-1999, model-I").wait_for()
        assert tab.get_attribute("#list", "aria-activedescendant") == "row-17999"


@pytest.mark.weights
def test_trials_of_which_there_are_too_many_keep_their_rows_and_say_where_the_rest_is(tmp_path):
    run = write_mugen_run(tmp_path / "mugen")
    report(f"run={run}", "embed_text_mb=0.00005")  # 50 characters; a response has 20
    with opened() as tab:
        ready(tab, (run / "report.html").as_uri())
        assert "4 responses are too many for the page" in tab.inner_text("#about")
        tab.evaluate("location.hash = '#run=mugen&item=q1 a dog barks&trial=2'")
        tab.locator(
            "#detail .soft", has_text="This response (20 characters) is left out of the page"
        ).wait_for()
        assert tab.locator("#detail .presented li").count() == 3
        tab.fill("#q", "no such word")
        tab.check("#deep")
        tab.locator(
            "#count", has_text="0 of 6 trials. The responses of 4 more are not in this page"
        ).wait_for()
        tab.uncheck("#deep")
        assert count(tab) == "0 of 6 trials."


@pytest.mark.weights
def test_few_items_are_those_of_the_column_and_values_alike_have_no_interval(tmp_path):
    """30 items, M4 scored for three of them, M1 the same for all: 0.5 of 30 items."""
    lacks = {METRICS[3]: None, f"{METRICS[3]}_reason": "no_steps"}
    rows = [row(f"i{n}", "only", n, "x", **{METRICS[0]: 0.5} | (lacks if n > 2 else {})) for n in range(30)]
    uri = page_of(tmp_path / "run", finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))
    with opened() as tab:
        ready(tab, uri)
        told = tab.locator("#leaderboard .board caption").inner_text()
        assert (
            "30 items." in told
            and "Few items in M4, ARIA (3 at the least): their intervals are rough." in told
        )
        first, fourth = (
            tab.locator("#leaderboard .board tbody td").nth(place).inner_text() for place in (0, 3)
        )
        assert "no interval: values alike" in first and " to " in fourth and "no interval" not in fourth
        tab.select_option("#category-measure", METRICS[3])
        assert "no interval: one item" in tab.locator("#categories .board td").first.inner_text()
        for column, least in (
            (METRICS[3], 1),
            ("accuracy", 10),
        ):  # ten items of each category, one of them with M4
            tab.select_option("#category-measure", column)
            assert f"({least} at the least)" in tab.locator("#categories caption").first.inner_text()


@pytest.mark.weights
def test_by_keyboard_on_a_phone_and_in_the_dark(tmp_path):
    uri = page_of(tmp_path / "run", results())
    with opened(390, 844, color_scheme="dark") as tab:
        ready(tab, uri)
        cells = tab.locator("#leaderboard .board tbody tr").all_inner_texts()
        assert sorted(text.count("n = 12") for text in cells) == [1, 10], "11 of 12 are scored for one model"
        box = tab.locator("#leaderboard .scroll").first
        for scrolled in (0, 200):
            box.evaluate("(box, to) => { box.scrollLeft = to; }", scrolled)
            caption = box.locator("caption span").bounding_box()
            assert caption["x"] >= 0 and caption["x"] + caption["width"] <= 390
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        tab.keyboard.press("/")
        assert tab.evaluate("document.activeElement.id") == "q"
        tab.keyboard.type("item-5")
        tab.focus("#list")
        tab.keyboard.press("ArrowDown")
        tab.keyboard.press("Enter")
        tab.locator("#detail.open h3", has_text="item-5").wait_for()
        assert tab.evaluate("document.activeElement.id") == "detail"
        tab.keyboard.press("Escape")
        assert not tab.locator("#detail.open").count()
        assert tab.evaluate("document.activeElement.id") == "list"
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert sum(map(int, paper[4:-1].split(","))) < 3 * 60
        tab.click("#theme")  # auto -> light
        tab.evaluate("scrollTo(0, 0)")
        assert (
            sum(map(int, tab.evaluate("getComputedStyle(document.body).backgroundColor")[4:-1].split(",")))
            == 3 * 255
        )


@pytest.mark.weights
def test_on_paper_nothing_is_cut_folded_or_dark(tmp_path):
    """An audit has the widest tables; A4 less its margins is 703 pixels wide."""
    run = write_audit_run(tmp_path / "audit")
    report(f"run={run}")
    with opened(703, 1000, color_scheme="dark") as tab:
        ready(tab, (run / "report.html").as_uri())
        tab.evaluate("document.documentElement.dataset.theme = 'dark'")
        tab.emulate_media(media="print")
        folded = tab.locator("details:not([open])").count()
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert folded > 0 and tab.locator("details:not([open])").count() == 0
        boxes = "[...document.querySelectorAll('.scroll')].map((box) => box.scrollWidth - box.clientWidth)"
        assert max(tab.evaluate(boxes)) <= 0
        assert tab.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
        assert not tab.locator("#controls").is_visible()
        tab.evaluate("dispatchEvent(new Event('afterprint'))")
        assert tab.locator("details:not([open])").count() == folded


@pytest.mark.weights
def test_every_control_has_a_name_and_text_stands_out(tmp_path):
    uri = page_of(tmp_path / "run", results())
    script = """() => [...document.querySelectorAll('button, input, select, audio, [role=listbox], [role=region]')]
      .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length))).map(e => e.outerHTML)"""
    ratio = """() => { const probe = document.createElement('span'); document.body.append(probe);
      const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
      const light = (name) => { probe.style.color = `var(--${name})`; context.fillStyle = getComputedStyle(probe).color; context.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const contrast = (a, b) => { const [x, y] = [light(a), light(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); };
      return Math.min(...['ink', 'soft', 'accent', 'good', 'bad', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8'].flatMap(c => [contrast(c, 'paper'), contrast(c, 'card')])); }"""
    for scheme in ("light", "dark"):
        with opened(color_scheme=scheme) as tab:
            ready(tab, f"{uri}#item=item-0")
            assert tab.evaluate(script) == []
            assert tab.evaluate(ratio) >= 4.5  # WCAG 2.2, AA, of text; every colour against both grounds
