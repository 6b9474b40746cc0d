"""Perturbed prompts through a real server: every condition asked once, effects by hand, modes side by side."""

import contextlib
import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.aggregate import SUMMARY
from operators.chat_api import ChatEndpoint
from operators.fingerprint import execution_field, row_keys
from operators.frames import to_batch
from operators.lalms.openai_chat import OpenAIChat
from operators.mode_table import NEEDED
from operators.perturbations import CONDITIONS
from operators.store import Store
from pipelines.config import CONF, ConfigError
from pipelines.perturb import evaluate
from pipelines.perturb_phases import under
from tests.chat_server import Answer, ChatServer
from tests.pipelines.cli import TOY_PATH
from tests.pipelines.test_aria_eval import tone, write_lines

pytestmark = [pytest.mark.weights, pytest.mark.usefixtures("ray_session")]
N = 10


@pytest.fixture(scope="module")
def questions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("questions")
    rows = []
    for n in range(N):
        tone(folder / f"{n}.wav", pitch=300 + 50 * n)
        choices = ["dog", "owl", "rain", "bell"]
        rows.append(
            {
                "id": f"q{n}",
                "question": f"What is it? ({n})",
                "choices": choices,
                "answer": "dog",
                "audio": f"{n}.wav",
            }
        )
    write_lines(folder / "q.jsonl", rows)
    return folder


def follower(body, n):
    """Right by itself; goes wherever a given chain or a hint leads; swaps its answer when told to."""
    text = " ".join(part["text"] for m in body["messages"] for part in m["content"] if part["type"] == "text")
    number = re.search(r"What is it\? \((\d)\)", text)[1]
    answer = "dog"
    if lead := re.search(r'conclusion has to be "(\w+)"', text) or re.search(r'might be "(\w+)"', text):
        answer = lead[1]
    if "must not be its conclusion" in text:
        answer = "bell"
    said = f"[PERCEPTION] Entities: sound {number} [ANALYSIS] a [REASONING] b [ANSWER] {answer}"
    return Answer("I cannot tell." if "Think as you like" in text else said)


def stubborn(body, n):
    return Answer(f"[PERCEPTION] Entities: x{n % 3} [ANALYSIS] a [REASONING] b [ANSWER] dog")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class Counted(OpenAIChat):
    """Writes a line whenever it is loaded."""

    log: str = execution_field("")

    def ready(self):
        with Path(self.log).open("a") as log:
            log.write("loaded\n")
        return super().ready()


def run(folder, questions, url, *more, name="chat"):
    overrides = [
        TOY_PATH,
        *(["model=chat", f"model.endpoint.base_url={url}"] if url else []),
        "benchmark=manifest",
        f"benchmark.path={questions / 'q.jsonl'}",
        f"store.root={folder / 'store'}",
        f"out={folder / 'run'}",
        *more,
    ]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("perturb", overrides=overrides)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        evaluate(config, name, "test")
    return out.getvalue()


def table(folder, name):
    return pq.read_table(folder / "run" / f"{name}.parquet").to_pylist()


def test_a_model_that_follows_is_scaffolding_and_every_condition_is_asked_once(tmp_path, questions):
    log = tmp_path / "log"
    counted = ("model._target_=tests.pipelines.test_perturb.Counted", f"+model.log={log}")
    with ChatServer(follower) as server:
        printed = run(tmp_path, questions, server.url, *counted)
        assert len(server.requests) == N * len(CONDITIONS)
        assert all(len(asked.audio) == 1 for asked in server.requests)
        # Once for all that needs no answer under `cot`, once for the rest; a run with nothing to ask loads nothing.
        assert log.read_text() == 2 * "loaded\n"
        run(tmp_path, questions, server.url, *counted)
        assert len(server.requests) == N * len(CONDITIONS) and log.read_text() == 2 * "loaded\n"
    rows = {row["condition"]: row for row in table(tmp_path, "perturbation")}
    assert list(rows) == list(CONDITIONS)
    assert rows["cot"]["accuracy"] == 1.0
    assert rows["free"]["no_answer_rate"] == 1.0 and rows["free"]["accuracy"] == 0.0
    assert rows["answer_swap"]["accuracy"] == 0.0 and rows["answer_swap"]["change_rate"] == 1.0
    assert rows["answer_swap"]["difference"] == -1.0
    assert rows["decoration"]["change_rate"] == 0.0
    assert rows["scaffolding"]["change_rate"] == 1.0
    (mode,) = table(tmp_path, "modes")
    assert (mode["mode_from_behaviour"], mode["n_followed"], mode["n_kept"]) == ("Scaffolding", N, 0)
    assert (mode["n_decoration_kept"], mode["n_decoration_compared"], mode["n_unanswered"]) == (N, N, 0)
    assert mode["mode_from_profile"] is None and f"{N}/0/0/{N}" in printed
    for words in ("AnsSwap", "RandHints", "Scaffolding", "Reasoning modes"):
        assert words in printed
    said = table(tmp_path, "responses")
    assert len(said) == N * len(CONDITIONS)
    # What was asked is kept apart: the item's own question stands in the table.
    assert {row["question"] for row in said} == {f"What is it? ({n})" for n in range(N)}
    assert "chat" in (tmp_path / "run" / "perturbation.md").read_text()
    # Asked together, each model stores what it would store alone: under its own name, by the key of its own rows.
    model = Counted(endpoint=ChatEndpoint("toy", key_variable=None))
    shelves = {
        name: Store(str(tmp_path / "store")).responses(under(model, name)).read() for name in CONDITIONS
    }
    three, two = ("cot", "wrong_perception", "random_hint"), ("decoration", "scaffolding")
    counts = {name: N * (3 if name in three else 2 if name in two else 1) for name in CONDITIONS}
    assert {name: shelf.num_rows for name, shelf in shelves.items()} == counts
    own = [{**row, "trial": 0} for row in said if row["condition"] == "free"]
    keys = row_keys(under(model, "free"), to_batch(pa.Table.from_pylist(own).select(Counted.reads)))
    assert sorted(shelves["free"]["key"].to_pylist()) == sorted(keys)


def test_modes_stand_beside_those_of_profiles(tmp_path, questions):
    # Medians: accuracy (0.7 + 0.8) / 2 = 0.75, ARIA (0.2 + 0.7) / 2 = 0.45, and so for M2, M4, M5.
    means = {"chat": (0.9, 0.8), "poor": (0.2, 0.1), "lucky": (0.8, 0.2), "good": (0.7, 0.7)}
    rows = [
        {
            **dict.fromkeys(SUMMARY.names),
            "model": model,
            "benchmark": "b",
            "group_kind": "overall",
            "n_items": 4,
            "accuracy": accuracy,
            **{
                f"{m}_mean": aria
                for m in ("aria", "m2_inter_step_coherence", "m4_step_causality", "m5_reasoning_progress")
            },
        }
        for model, (accuracy, aria) in means.items()
    ]
    (tmp_path / "aria").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=SUMMARY), tmp_path / "aria" / "summary.parquet")
    with ChatServer(stubborn) as server:
        run(
            tmp_path,
            questions,
            server.url,
            "conditions=[decoration,scaffolding]",
            f"beside=[{tmp_path / 'aria'}]",
        )
    modes = {row["model"]: row for row in table(tmp_path, "modes")}
    assert modes["chat"]["mode_from_profile"] == modes["chat"]["mode_from_behaviour"] == "Reasoning"
    assert modes["chat"]["agree"] is True
    assert modes["lucky"]["mode_from_profile"] == "Decoration" and modes["lucky"]["agree"] is None
    assert modes["poor"]["mode_from_profile"] == "Scaffolding"
    assert modes["good"]["mode_from_profile"] is None


def test_what_cannot_be_asked_is_said(tmp_path, questions):
    with pytest.raises(ConfigError, match="can be given another one"):
        run(tmp_path, questions, None, "model=cascade")
    with pytest.raises(ConfigError, match="did you mean 'decoration'"):
        run(tmp_path, questions, "http://127.0.0.1:9", "conditions=[decoratoin]")
    with pytest.raises(ConfigError, match=r"no summary\.parquet"):
        run(tmp_path, questions, "http://127.0.0.1:9", f"beside=[{tmp_path}]")
    file = tmp_path / "summary.parquet"
    for content, said in ((b"PAR1", r"summary\.parquet cannot be read"), (None, "no column accuracy")):
        file.write_bytes(content) if content else pq.write_table(pa.table({"model": ["m"]}), file)
        with pytest.raises(ConfigError, match=said):
            run(tmp_path, questions, "http://127.0.0.1:9", f"beside=[{tmp_path}]")
    row = dict.fromkeys(SUMMARY.names, None) | {"model": "m", "benchmark": "b", "group_kind": "overall"}
    row |= {name: 0.5 for name in NEEDED if name.endswith(("mean", "accuracy"))}
    pq.write_table(pa.Table.from_pylist([row], schema=SUMMARY), file)
    with pytest.raises(ConfigError, match="m is measured twice on b"):
        run(tmp_path, questions, "http://127.0.0.1:9", f"beside=[{tmp_path},{tmp_path}]")
    assert not (tmp_path / "run").exists()
