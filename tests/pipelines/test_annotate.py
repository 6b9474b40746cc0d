"""`python -m pipelines.annotate`: pages in a real browser, and the table from what they save."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from hydra import compose, initialize_config_dir

from operators.aggregate import finish_rows
from operators.schema import result_schema
from operators.tables import TableError
from pipelines.annotate import main
from pipelines.config import CONF, ConfigError
from tests.browser import opened
from tests.report_toys import HOSTILE, results, row, write_run


def annotate(*overrides):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        main(compose("annotate", overrides=list(overrides)))


def test_pages_show_neither_model_nor_score_nor_right_answer(tmp_path):
    run = write_run(tmp_path / "run", results(models=("secret-model", "other-model")))
    annotate(f"run={run}", f"out={tmp_path / 'study'}", "per_model=4", "groups=2")
    for group in "12":
        text = (tmp_path / "study" / f"rate-group-{group}.html").read_text()
        for word in ("secret-model", "other-model", "gold", "aria", "item-"):
            assert word not in text.split('id="data-study">')[1].split("</script>")[0].replace(
                "of item-", ""
            ), word
    plan = json.loads((tmp_path / "study" / "plan.json").read_text())
    assert {chain["model"] for chain in plan["chains"]} == {"secret-model", "other-model"}
    with pytest.raises(ConfigError, match="there already"):
        annotate(f"run={run}", f"out={tmp_path / 'study'}")


def test_names_of_clips_tell_raters_nothing(tmp_path):
    soundfile.write(tmp_path / "a-telling-name.wav", np.zeros(800), 8000)
    clips = [
        str(tmp_path / "a-telling-name.wav"),
        str(tmp_path / "another-telling-name.wav"),
        "s3://bucket/telling-too.wav",
    ]
    about = {"audio_uris": clips, "audio_hashes": ["h"] * 3, "audio_seconds": [0.1] * 3}
    rows = finish_rows(pa.Table.from_pylist([row("i", "m", 0, "t", **about)], schema=result_schema()))
    annotate(f"run={write_run(tmp_path / 'run', rows)}", f"out={tmp_path / 'study'}", "groups=1")
    text = (tmp_path / "study" / "rate-group-1.html").read_text()
    assert "telling" not in text and text.count("does not hold it, and") == 2 and '"name":"clip 3"' in text


def test_chains_of_several_runs_are_one_study(tmp_path):
    runs = [
        write_run(tmp_path / name, results(models=models))
        for name, models in (("a", ("a", "b")), ("b", ("c",)))
    ]
    both = f"run=[{runs[0]},{runs[1]}]"
    annotate(both, f"out={tmp_path / 'study'}", "per_model=4", "groups=2")
    plan = json.loads((tmp_path / "study" / "plan.json").read_text())
    models = [chain["model"] for chain in plan["chains"]]
    assert {model: models.count(model) for model in models} == {"a": 4, "b": 4, "c": 4}
    other = write_run(tmp_path / "other", results(models=("d",)), fingerprints={"m1": "f" * 16})
    with pytest.raises(ConfigError, match=r"different scorers(.|\n)*mixed=true"):
        annotate(f"run=[{runs[0]},{other}]", f"out={tmp_path / 'mixed'}")
    annotate(f"run=[{runs[0]},{other}]", f"out={tmp_path / 'mixed'}", "mixed=true", "per_model=1", "groups=1")


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(TableError, match=r"no such file"):
        annotate("read=[x.json]", f"out={tmp_path}")
    (tmp_path / "plan.json").write_text("[]")
    with pytest.raises(TableError, match="is not a plan"):
        annotate("read=[x.json]", f"out={tmp_path}")
    with pytest.raises(ConfigError, match="at least 1"):
        annotate("groups=0")


def test_reading_fewer_files_loses_no_rater_and_tells_of_fewer_ratings(tmp_path, capsys):
    study = tmp_path / "study"
    annotate(f"run={write_run(tmp_path / 'run', results())}", f"out={study}", "per_model=2", "groups=2")
    plan = json.loads((study / "plan.json").read_text())
    mine = [chain["code"] for chain in plan["chains"] if chain["group"] == "1"]
    assert len(mine) == 2
    about = {"study": plan["study"], "group": "1", "annotated_at": "2026-02-02T00:00:00Z"}
    for name, rater, rated in (("a", "ann", mine), ("b", "bo", mine), ("b1", "bo", mine[:1])):
        saved = [{**about, "rater": rater, "chain": code, "rating": 4} for code in rated]
        (tmp_path / f"{name}.json").write_text(json.dumps(saved))
    annotate(f"read=[{tmp_path / 'a.json'},{tmp_path / 'b.json'}]", f"out={study}")
    assert "no ratings yet of group 2" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="holds 2 ratings of 'bo', whose files were not given"):
        annotate(f"read=[{tmp_path / 'a.json'}]", f"out={study}")
    assert pq.read_table(study / "ratings.parquet")["rating"].to_pylist() == [4] * 4
    annotate(f"read=[{tmp_path / 'a.json'},{tmp_path / 'b1.json'}]", f"out={study}")
    assert "'bo' has 1 ratings here, and had 2 in the earlier ratings.parquet" in capsys.readouterr().out


@pytest.mark.weights
def test_raters_rate_by_keyboard_stop_resume_save_and_are_read(tmp_path, capsys):
    soundfile.write(tmp_path / "bark.wav", np.zeros(800), 8000)
    clip = {"audio_uris": [str(tmp_path / "bark.wav")], "audio_hashes": ["h"], "audio_seconds": [0.1]}
    rows = [row(f"i{n}", f"m {HOSTILE}", n, HOSTILE, **clip) for n in range(6)]
    run = write_run(tmp_path / "run", finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))
    study = tmp_path / "study"
    annotate(f"run={run}", f"out={study}", "per_model=3", "groups=1")
    files = []
    for rater, keys in (("ann", "1205"), ("b/o", "135")):
        with opened(390, 844) as tab:
            tab.goto((study / "rate-group-1.html").as_uri())
            tab.wait_for_selector("body[data-ready]", state="attached")
            tab.fill("#rater", rater)
            tab.keyboard.press("Enter")
            for place, key in enumerate(keys):
                tab.keyboard.press(key)
                if place < len(keys) - 1 and keys[place + 1] != "0":
                    tab.keyboard.press("ArrowRight")
            told = "2 of 3 rated." if rater == "ann" else "3 of 3 rated."  # 1, then 2 taken back, then 5
            assert tab.inner_text("#count") == told
            # A key without a name (an input method sends such) is no rating.
            tab.evaluate(
                "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '', bubbles: true}))"
            )
            tab.evaluate(
                "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '12', bubbles: true}))"
            )
            assert tab.inner_text("#count") == told
            assert tab.evaluate("window.owned") is None
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
            tab.reload()
            tab.wait_for_selector("body[data-ready]", state="attached")
            tab.fill("#rater", rater)
            tab.keyboard.press("Enter")
            assert tab.inner_text("#count") == told  # resumed
            tab.locator("#chain audio[src]").wait_for(state="attached")
            tab.evaluate("document.querySelector('#chain audio').play()")
            with tab.expect_download() as saved:
                tab.click("#save")
            files.append(tmp_path / saved.value.suggested_filename)
            saved.value.save_as(files[-1])
    assert "/" not in files[1].name
    annotate(f"read=[{','.join(map(str, files))}]", f"out={study}")
    table = pq.read_table(study / "ratings.parquet")
    assert sorted(str(rating) for rating in table["rating"].to_pylist()) == ["1", "1", "3", "5", "5", "None"]
    assert "2 of 3" in capsys.readouterr().out  # raters of the group


@pytest.mark.weights
def test_a_saved_file_goes_on_in_another_browser_and_a_foreign_one_is_refused(tmp_path):
    run = write_run(tmp_path / "run", results())
    study = tmp_path / "study"
    annotate(f"run={run}", f"out={study}", "per_model=2", "groups=1")
    plan = json.loads((study / "plan.json").read_text())
    saved = [{"study": plan["study"], "group": "1", "rater": "ann", "chain": chain["code"], "rating": 4, "annotated_at": "x"}
             for chain in plan["chains"][:3]]  # fmt: skip
    (tmp_path / "mine.json").write_text(json.dumps(saved))
    (tmp_path / "foreign.json").write_text(json.dumps([{**saved[0], "study": "another"}]))
    with opened(color_scheme="dark") as tab:
        tab.goto((study / "rate-group-1.html").as_uri())
        tab.wait_for_selector("body[data-ready]", state="attached")
        tab.set_input_files("#restore", tmp_path / "foreign.json")
        tab.locator("#trouble", has_text="does not hold ratings").wait_for()
        tab.set_input_files("#restore", tmp_path / "mine.json")
        tab.locator("#count", has_text="3 of 4 rated.").wait_for()
        assert "3 of 4 rated." in tab.inner_text("#count")
        # An older file that holds every chain takes nothing back: it adds what the browser lacks, and changes what it rated before.
        codes = [chain["code"] for chain in plan["chains"]]
        mine = {code: {"rating": 4, "annotated_at": "2026-02-02T00:00:00Z"} for code in codes[:2]}
        place = f"ratings {plan['study']} 1 bo"
        tab.evaluate("([place, mine]) => localStorage.setItem(place, JSON.stringify(mine))", [place, mine])
        older = zip(codes, (None, 2, 3, None), (None, *["2026-01-01T00:00:00Z"] * 2, None), strict=True)
        file = [
            {**saved[0], "rater": "bo", "chain": c, "rating": r, "annotated_at": at} for c, r, at in older
        ]
        (tmp_path / "older.json").write_text(json.dumps(file))
        tab.set_input_files("#restore", tmp_path / "older.json")
        tab.locator("#count", has_text="3 of 4 rated.").wait_for()
        kept = tab.evaluate("(place) => JSON.parse(localStorage.getItem(place))", place)
        assert {code: word["rating"] for code, word in kept.items()} == dict(
            zip(codes[:3], (4, 4, 3), strict=True)
        )
