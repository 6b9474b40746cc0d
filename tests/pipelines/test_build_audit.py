"""`build_audit`, `listen` and `audit_validity` as a user runs them; the built audit is read by the audit itself."""

import csv
import json
import os
import subprocess
import sys

import pytest

from operators.audio import decode
from operators.benchmarks.emotions import EmotionAudit, human_emotions
from pipelines.build_audit_settings import OWN_SOURCES, BuildAudit
from pipelines.config import build
from tests.chat_server import Answer, ChatServer
from tests.pipelines.cli import ROOT, composed

assert BuildAudit
KINDS = ("single_turn_emotions", "positional_emotion", "emotional_conversations")


def run(pipeline, *arguments, cwd=ROOT, **environment):
    command = [sys.executable, "-m", f"pipelines.{pipeline}", *arguments]
    env = {**os.environ, "COLUMNS": "160", "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("group", ["speech", "scorer"])
def test_every_option_composes_and_builds(group):
    for file in sorted((ROOT / "conf" / group).glob("*.yaml")):
        config = composed(f"{group}={file.stem}", pipeline="build_audit")
        assert build(config[group], group) is not None


def test_the_writer_and_the_rater_build():
    for pipeline, group in (("build_audit", "writer"), ("audit_validity", "rater")):
        import pipelines.audit_validity_settings  # noqa: F401 (registers the schema)

        needed = ["check=response_balance"] if group == "rater" else []
        config = composed(f"+{group}=llm", *needed, pipeline=pipeline)
        assert build(config[group], group).endpoint.max_tokens > 0


def test_the_built_in_audit_is_what_its_record_says():
    folder = ROOT / "operators" / "data" / "audit_sample"
    record = json.loads((folder / "build.json").read_text())
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 2_000_000
    for kind in KINDS:
        table = EmotionAudit(kind).load()
        assert table["item_error"].null_count == table.num_rows == record["kinds"][kind]["items"] >= 3
    heard = {clip["audio"] for clip in record["clips"]}
    assert {f"audio/{path.name}" for path in (folder / "audio").iterdir()} == heard
    assert all(clip["fitness"] >= 0 and clip["accepted"] >= 1 for clip in record["clips"])
    assert "/" not in record["sources"]["positional_emotion"]["source"]
    assert "prosody presets" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["attempts=0"], "config key attempts: at least 1, not 0"),
        (["kinds=[single]"], "no kind is called 'single'; there are single_turn_emotions"),
        (["output=operators"], "output=operators holds other files"),
        (["scorer=emotion2vec"], "emotion2vec"),
        (["sources.single_turn_emotions=nowhere.jsonl"], "nowhere.jsonl: there is no such file"),
    ],
)
@pytest.mark.weights
def test_what_cannot_be_meant_is_said(tmp_path, arguments, said):
    done = run("build_audit", *arguments, *([] if "output" in arguments[0] else [f"output={tmp_path}"]))
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
    assert not any(tmp_path.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("espeakng_loader", reason="eSpeak NG is the optional extra `speech`")
    folder = tmp_path_factory.mktemp("audit")
    good = json.loads((OWN_SOURCES / "positional_emotion.jsonl").read_text().splitlines()[0])
    rows = [
        good,
        good | {"id": "again", "goals": good["goals"][:1]},
        good,
        good | {"id": "mute", "turns": [*good["turns"][:-1], {"speaker": "user", "text": "..."}]},
    ]
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    single = {
        "id": "s<b>",
        "sentence": "Is it & here?",
        "emotions": ["frazzled", "sad"],
        "responses": ["Yes.", "No."],
    }
    with (folder / "s.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(single))
        writer.writeheader()
        writer.writerow({key: json.dumps(v) if isinstance(v, list) else v for key, v in single.items()})
    done = run(
        "build_audit", f"sources.positional_emotion={folder / 'p.jsonl'}",
        f"sources.single_turn_emotions={folder / 's.csv'}", f"output={folder / 'out'}", "attempts=2", "enough=1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "out", done


@pytest.mark.weights
def test_a_dry_run_says_what_would_be_rendered_and_leaves_nothing(tmp_path):
    row = {"id": "x", "sentence": "It is late.", "emotions": ["angry", "sad"]}
    (tmp_path / "s.jsonl").write_text(json.dumps(row))
    arguments = [
        f"sources.single_turn_emotions={tmp_path / 's.jsonl'}",
        f"output={tmp_path / 'out'}",
        "dry_run=true",
    ]
    done = run("build_audit", *arguments, "+writer=llm")
    assert done.returncode == 0 and "1 more rows would be written by the language model" in done.stdout
    done = run("build_audit", f"output={tmp_path / 'out'}", "dry_run=true", "kinds=[positional_emotion]")
    # each of 3 items: 3 user turns, one of them in two manners, 2 assistant turns, 2 replies: 8 lines, 7 different texts
    assert "3 items, 24 lines to render in at most 261 renderings" in done.stdout
    assert not (tmp_path / "out").exists()


class TestAWholeBuild:
    """One offline build from sources with good and bad rows; everything that follows uses it."""

    pytestmark = pytest.mark.weights

    def test_the_audit_reads_it_and_what_was_bad_is_counted_with_its_reason(self, built):
        folder, done = built
        record = json.loads((folder / "build.json").read_text())
        reasons = {row["id"]: row["reason"].partition(":")[0] for row in record["discarded"]}
        assert reasons["again"] == "no_contrast" and reasons["hotel"] == "duplicate_id"
        assert reasons["mute"] == "rendering_rejected" and reasons[""] == "malformed_json"
        assert record["kinds"]["positional_emotion"]["items"] == 1 and "no_contrast" in done.stderr
        sheet = (folder / "DATASHEET.md").read_text()
        assert "no_contrast" in sheet and "prosody presets" in sheet
        (item,) = (
            EmotionAudit("positional_emotion", str(folder / "positional_emotion.jsonl")).load().to_pylist()
        )
        assert item["item_error"] is None
        paths = [human_emotions(branch) for branch in item["branches"]]
        assert paths == [["neutral", "angry", "angry"], ["neutral", "neutral", "angry"]]
        clips = [[turn["audio_uri"] for turn in branch] for branch in item["branches"]]
        shared = [a == b for a, b in zip(*clips, strict=True)]
        assert shared == [True, True, False, True, True]  # the third turn alone differs
        assert all(decode(uri).sample_rate == 16_000 for uri in item["audio_uris"])
        assert not any(emotion in uri for uri in item["audio_uris"] for emotion in ("angry", "neutral"))
        (single,) = (
            EmotionAudit("single_turn_emotions", str(folder / "single_turn_emotions.jsonl"))
            .load()
            .to_pylist()
        )
        assert single["item_id"] == "s<b>" and single["branches"][0][0]["text"] == "Is it & here?"

    def test_a_folder_is_not_overwritten_unasked(self, built):
        folder, _ = built
        before = (folder / "build.json").read_bytes()
        done = run("build_audit", f"output={folder}")
        assert done.returncode == 1 and "overwrite=true" in done.stderr
        assert (folder / "build.json").read_bytes() == before

    def test_a_page_is_made_from_it_and_exports_are_read_back(self, built, tmp_path):
        pytest.importorskip("krippendorff", reason="agreement is the optional extra `agreement`")
        folder, _ = built
        path = f"benchmark.path={folder / 'single_turn_emotions.jsonl'}"
        done = run("listen", path, f"output={tmp_path / 'page.html'}")
        assert done.returncode == 0 and "1 of 1 items" in done.stdout
        assert "s\\u003cb\\u003e" in (tmp_path / "page.html").read_text()
        rating = {"item_id": "s<b>", "branch": 1, "swapped": False, "chosen": 1, "plays": 1}
        names = []
        for name in ("anna", "ben"):
            names.append(tmp_path / f"{name}.json")
            names[-1].write_text(json.dumps({"page": "p", "listener": name, "ratings": [rating]}))
        done = run("listen", f"exports=[{names[0]},{names[1]}]", f"output={tmp_path / 'tables'}")
        assert done.returncode == 0 and "100.0%" in done.stdout and "all answers are equal" in done.stdout
        assert (tmp_path / "tables" / "listeners.csv").exists()
        done = run("listen", f"exports=[{tmp_path / 'gone.json'}]")
        assert done.returncode == 1 and "gone.json: there is no such file" in done.stderr

    def test_the_balance_of_its_replies_is_measured_and_rated(self, built, tmp_path):
        pytest.importorskip("speechmos", reason="DNSMOS is the optional extra `audit`")
        folder, _ = built

        def script(body, n):
            polite = 5 if "Yes." in body["messages"][0]["content"] else 2
            return Answer(
                json.dumps({"politeness": polite, "helpfulness": 3, "naturalness": 3, "fluency": 3})
            )

        with ChatServer(script, key="sk-x") as server:
            done = run(
                "audit_validity", "check=response_balance", f"benchmark.path={folder / 'single_turn_emotions.jsonl'}",
                f"out={tmp_path}", "+rater=llm", f"rater.endpoint.base_url={server.url}", OPENAI_API_KEY="sk-x",
            )  # fmt: skip
        assert done.returncode == 0, done.stderr
        with (tmp_path / "balance.csv").open() as file:
            rows = {row["quality"]: row for row in csv.DictReader(file)}
        assert float(rows["politeness"]["mean_absolute_difference"]) == 3.0
        assert float(rows["words"]["mean_absolute_difference"]) == 0.0
        assert 1 < float(rows["dnsmos_overall"]["mean"]) < 5
