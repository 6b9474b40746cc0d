"""One worker, several stages: what they load once, and that none takes another's results away."""

import pyarrow as pa
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.base import Resources, Stage
from operators.lalms.asking import Lalm, Said
from operators.lalms.hearing import Hearing
from operators.prompts import Prompt
from pipelines.pool import Pool
from tests.operators.lalms.clips import tone

LOADED = []


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class Loud(Lalm):
    """Says the last line that it was asked; notes every time it is loaded."""

    version = 1

    def ready(self):
        LOADED.append(self.system_prompt)
        return Hearing(self.limits, None), lambda asked: [
            Said(str(one.parts[-1]).splitlines()[-1], "stop") for one in asked
        ]


def test_models_that_differ_in_their_prompts_alone_are_loaded_once_and_keep_their_rows_apart(tmp_path):
    LOADED.clear()
    models = {
        "bare": Loud(prompt=None),
        "free": Loud(prompt=Prompt("free")),
        "other": Loud(prompt=None, system_prompt="Listen."),
    }
    path, digest = tone(tmp_path, "c", 0.1)
    rows = pa.table(
        {
            "question": ["What?", "Why?", "Who?", "How?"],
            "choices": [["a"]] * 4,
            "audio_uris": [[path]] * 4,
            "audio_hashes": [[digest]] * 3 + [["another sound's"]],
            "trial": [0] * 4,
            "bare.todo": [True, False, False, True],
            "free.todo": [False, True, False, False],
            "other.todo": [False, False, True, False],
        }
    )
    pool = Pool([Stage(name, model, Resources()) for name, model in models.items()])
    done = pool(rows)
    bare, free, other, failed = done["response"].to_pylist()
    assert (bare, other, failed) == ("What?", "Who?", None)
    assert free not in (None, "Why?"), "the prompt's own last line"
    assert done["response_error"].to_pylist()[:3] == [None] * 3
    assert done["response_error"].to_pylist()[3].startswith("audio_changed")
    assert LOADED == [None, "Listen."], "another system prompt is another model"
    # A clip that two stages of one model hear is decoded once; the two sounds of the last row and `other` are others.
    counts = {name: done[f"{name}.encoded"].drop_null().to_pylist() for name in models}
    assert counts["free"] == ['{"decoded": 0}'] and counts["other"] == ['{"decoded": 1}']
    assert pool(rows)["response"].to_pylist() == done["response"].to_pylist() and len(LOADED) == 2
