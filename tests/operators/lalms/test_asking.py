"""What a model is asked: layout, prompt, limits, seeds; and that one bad row costs itself alone."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, ValidationError
from pydantic.dataclasses import dataclass

from operators.base import apply
from operators.fingerprint import fingerprint
from operators.lalms.asking import Lalm, Said, alone_where_needed, answer_rows, asked_text, layout
from operators.lalms.hearing import AudioLimits, Hearing, over_limits
from operators.prompts import Prompt
from tests.operators.lalms.clips import batch, tone


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class Echo(Lalm):
    """Says what it was asked, clips by their length."""

    version = 1

    def ready(self):
        def ask(requests):
            told = []
            for one in requests:
                shown = [p if isinstance(p, str) else f"<{one.clips[p].seconds:g} s>" for p in one.parts]
                told.append(Said(" ".join(shown), "stop", {"prompt_tokens": 1, "seed": one.seed}))
            return told

        return Hearing(self.limits, 16_000), ask


def asked(spec, rows):
    return apply(spec, spec.build(), batch(rows))


@pytest.mark.parametrize(
    ("choices", "n_clips", "expected"),
    [
        (["dog", "cat"], 1, [0, "Q"]),
        (["dog", "cat"], 2, ["Clip 1:", 0, "Clip 2:", 1, "Q"]),
        (["Audio 1", "Audio 2"], 2, ["Q", "Audio 1:", 0, "Audio 2:", 1]),
        (["Audio 1", "Audio 2"], 3, ["Reference:", 0, "Q", "Audio 1:", 1, "Audio 2:", 2]),
        (
            ["Audio 1", "Audio 2"],
            4,
            ["Reference 1:", 0, "Reference 2:", 1, "Q", "Audio 1:", 2, "Audio 2:", 3],
        ),
        (["Audio 2", "Audio 1"], 2, ["Clip 1:", 0, "Clip 2:", 1, "Q"]),
        (["Audio 1", "Audio 2"], 1, [0, "Q"]),
        ([], 1, [0, "Q"]),
        (["Audio 1"], 1, ["Q", "Audio 1:", 0]),
    ],
)
def test_every_clip_stands_under_the_name_by_which_the_text_speaks_of_it(choices, n_clips, expected):
    assert layout("Q", choices, n_clips) == expected


@given(st.integers(1, 12), st.integers(0, 12))
def test_every_clip_is_there_once_and_in_order(n_clips, n_choices):
    parts = layout("Q", [f"Audio {n + 1}" for n in range(n_choices)], n_clips)
    assert [part for part in parts if isinstance(part, int)] == list(range(n_clips)) and parts.count("Q") == 1


def test_orders_of_one_item_share_references_and_instruction(tmp_path):
    reference, *clips = [tone(tmp_path, f"c{n}", 1 + n / 4) for n in range(6)]
    names = [f"Audio {n}" for n in range(1, 6)]
    orders = [clips, [*clips[1:], clips[0]], clips[::-1]]
    done = asked(Echo(prompt=None), [("Pick.", names, [reference, *order], 0) for order in orders])
    told = list(done["response"])
    assert len(set(told)) == 3 and all(text.startswith("Reference: <1 s> Pick. Audio 1: <") for text in told)


def test_the_prompt_holds_question_and_lettered_choices_and_none_is_the_question_itself():
    text = asked_text(Echo(), "Which {{choices}}?", ["dog", "cat"])
    assert "Question: Which {{choices}}?\nChoices:\n(A) dog\n(B) cat" in text
    assert asked_text(Echo(prompt=None), "Task: pick", ["x"]) == "Task: pick"
    with pytest.raises(ValidationError, match="question and choices"):
        Echo(prompt=Prompt("option_judge"))


def test_a_prompt_that_asks_no_question_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("Which of these?\n{{choices}}")
    with pytest.raises(ValidationError, match=r"mine\.txt' asks no question: it has no field {{question}}"):
        Echo(prompt=Prompt(str(tmp_path / "mine.txt")))


def test_six_clips_reach_the_model_in_order(tmp_path):
    clips = [tone(tmp_path, f"c{n}", 1 + n / 4) for n in range(6)]
    done = asked(Echo(prompt=None), [("Q", [f"Audio {n}" for n in range(1, 6)], clips, 0)])
    assert done["response"][0] == (
        "Reference: <1 s> Q Audio 1: <1.25 s> Audio 2: <1.5 s> Audio 3: <1.75 s> Audio 4: <2 s> Audio 5: <2.25 s>"
    )
    usage = json.loads(done["usage"][0])
    assert usage["n_audio"] == 6 and usage["audio_seconds_used"] == usage["audio_seconds"] == 9.75


def test_limits_skip_or_truncate_and_rows_say_so(tmp_path):
    short, long = tone(tmp_path, "short", 1.0), tone(tmp_path, "long", 3.0)
    rows = [("Q", ["a", "b"], [short], 0), ("Q", ["a", "b"], [long], 0), ("Q", ["a", "b"], [short, long], 0)]
    skip = asked(Echo(prompt=None, limits=AudioLimits(max_clips=1, max_seconds=2, over_long="skip")), rows)
    assert skip["response"][0] == "<1 s> Q"
    assert skip["response_error"][1] == "audio_too_long: a clip has 3.00 s, the model takes 2 s"
    assert skip["response_error"][2] == "too_many_clips: the row has 2 clips, the model takes 1"
    cut = asked(Echo(prompt=None, limits=AudioLimits(max_seconds=2, over_long="truncate")), rows)
    assert list(cut["response"]) == ["<1 s> Q", "<2 s> Q", "Clip 1: <1 s> Clip 2: <2 s> Q"]
    usages = [json.loads(text) for text in cut["usage"]]
    assert [(u["audio_seconds"], u["audio_seconds_used"], u["audio_truncated"]) for u in usages] == [
        (1, 1, False), (3, 2, True), (4, 3, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "seconds_known", "stopped"),
    [
        (AudioLimits(max_seconds=2), True, {"b": "audio_too_long"}),
        (AudioLimits(max_seconds=2), False, {}),
        (AudioLimits(max_seconds=2, over_long="skip"), True, {}),
        (AudioLimits(max_seconds=2, over_long="truncate"), True, {}),
        (AudioLimits(max_total_seconds=3.5), True, {}),
        (AudioLimits(max_total_seconds=3), True, {"b": "audio_too_long"}),  # 1 + 2.5 s
        (AudioLimits(max_total_seconds=3, over_long="skip"), True, {}),
        (AudioLimits(max_total_seconds=3, max_seconds=2, over_long="truncate"), True, {}),  # 1 + 2 s
        (
            AudioLimits(max_total_seconds=2, max_seconds=2, over_long="truncate"),
            True,
            {"b": "audio_too_long"},
        ),
        (AudioLimits(max_clips=1), False, {"b": "too_many_clips"}),
        (AudioLimits(max_clips=1, over_many="skip"), True, {}),
        (AudioLimits(), True, {}),
    ],
)
def test_what_stops_a_run(limits, seconds_known, stopped):
    items = [
        {"item_id": "a", "audio_uris": ["x"], "audio_seconds": [2.0]},
        {"item_id": "b", "audio_uris": ["x", "y"], "audio_seconds": [1.0, 2.5]},
    ]
    found = over_limits(limits, items, seconds_known)
    assert {name: reason.split(":")[0] for name, reason in found} == stopped


def test_limits_are_identity_only_where_they_cut():
    plain = fingerprint(Echo())
    assert fingerprint(Echo(limits=AudioLimits(max_clips=5, max_seconds=30, over_long="skip"))) == plain
    cut = {fingerprint(Echo(limits=AudioLimits(max_seconds=n, over_long="truncate"))) for n in (10, 20)}
    assert len({plain, *cut}) == 3


def test_a_bad_clip_is_its_rows_reason(tmp_path):
    good, broken = tone(tmp_path, "good", 1.0), tmp_path / "broken.wav"
    broken.write_text("no sound")
    rows = [
        ("Q", ["a"], [good], 0),
        ("Q", ["a"], [(str(broken), "0")], 0),
        ("Q", ["a"], [(good[0], "another hash")], 0),
        ("Q", ["a"], [], 0),
        ("Q", ["a"], [(str(tmp_path / "gone.wav"), "0")], 0),
    ]
    done = asked(Echo(prompt=None), rows)
    assert [None if e is None else e.split(":")[0] for e in done["response_error"]] == [
        None, "not_audio", "audio_changed", "no_audio", "missing_file",
    ]  # fmt: skip
    assert [r is None for r in done["response"]] == [False, True, True, True, True]


def test_a_whole_text_without_clips_is_asked_in_words_alone():
    done = asked(Echo(prompt=None), [("Which reply?", [], [], 0)])
    assert done["response_error"][0] is None and "Which reply?" in done["response"][0]
    assert json.loads(done["usage"][0])["n_audio"] == 0
    refused = asked(Echo(), [("Which reply?", [], [], 0)])
    assert refused["response_error"][0].startswith("no_audio")


def test_a_seed_belongs_to_the_row_and_its_trial_not_to_the_batch(tmp_path):
    clip = tone(tmp_path, "c", 1.0)
    rows = [("Q", ["a"], [clip], trial) for trial in range(3)] + [("R", ["a"], [clip], 0)]

    def seeds(spec, some):
        return [json.loads(text)["seed"] for text in asked(spec, some)["usage"]]

    whole = seeds(Echo(), rows)
    assert len(set(whole)) == 4 and seeds(Echo(), rows[::-1]) == whole[::-1]
    assert seeds(Echo(), rows[2:3]) == whole[2:3]
    assert not set(seeds(Echo(seed=1), rows)) & set(whole)


def test_a_request_that_breaks_its_batch_is_found_and_stands_alone():
    tried = []

    def ask(requests):
        tried.append(len(requests))
        if 13 in requests:
            raise RuntimeError("poison\nin two lines")
        return [Said(str(n)) for n in requests]

    said = alone_where_needed(ask, list(range(16)))
    assert [one.text for one in said] == [str(n) if n != 13 else None for n in range(16)]
    assert said[13].reason == "generation_failed: RuntimeError: poison in two lines"
    assert tried == [16, 8, 8, 4, 4, 2, 1, 1, 2]


def test_a_fault_of_the_code_is_not_a_rows():
    with pytest.raises(TypeError):
        alone_where_needed(lambda requests: len(3), [1, 2])


def test_empty_answers_are_reasons_and_untrusted_text_can_be_stored(tmp_path):
    clip = tone(tmp_path, "c", 1.0)
    said = [Said("", "stop"), Said("bad \ud800 surrogate", "stop"), Said("half", "length")]
    rows = batch([("Q", ["a"], [clip], n) for n in range(3)])
    done = answer_rows(Echo(), Hearing(AudioLimits(), None), lambda requests: said, rows)
    assert done["response_error"][0].startswith("empty_answer") and done["response"][0] is None
    done["response"][1].encode("utf-8")
    assert (done["response"][2], done["finish_reason"][2]) == ("half", "length")
    assert isinstance(done["response"], np.ndarray)
