"""The cascade as a judge: what it weighs, and how weights become a verdict. Toys stand for its three models."""

import json

import numpy as np
import pytest

from operators.audit.presentation import PROBES, Design, planned_calls, presented_call
from operators.lalms.cascade import Cascade
from operators.lalms.cascade_judge import CascadeJudge, decide, judge_rows, questions, told_texts
from operators.lalms.listening import Report
from operators.verdicts import prediction
from tests.audit_toys import items_of, positional, single
from tests.pipelines.cli import composed


@pytest.fixture(scope="module")
def spec():
    from pipelines.config import build

    return CascadeJudge(build(composed().model, "model"))


class Ears:
    """A listener whose transcripts are the names of the clips."""

    def reports(self, uris, hashes):
        if any("broken" in uri for uri in uris):
            return "truncated_audio: broken"
        return [
            Report((("Speech", 0.9), ("Shout", 0.4)), uri.rsplit("/", 1)[-1].removesuffix(".wav"), 1.0)
            for uri in uris
        ]


class Weigher:
    """A writer whose gain is the number of letters of the answer that the told text holds in a row."""

    context_length = 400

    def plain(self, text):
        return text

    def plain_tokens(self, text):
        return text

    def log_likelihoods(self, contexts, answers):
        return [
            np.array(
                [max((n for n in range(len(a) + 1) if a[:n] in c), default=0) for a in some], dtype=float
            )
            for c, some in zip(contexts, answers, strict=True)
        ]


def batch_of(rows):
    columns = {}
    for name in CascadeJudge.reads:
        columns[name] = np.empty(len(rows), dtype=object)
        for place, row in enumerate(rows):
            columns[name][place] = row[name]
    return columns


def presented(item, probe):
    design = Design((probe,), ("none",), 0)
    return [presented_call(item, call, heard=["angry"] * 3) for call in planned_calls(item, design)]


@pytest.fixture
def one(tmp_path):
    (item,) = items_of("single_turn_emotions", [single()], tmp_path)
    return item


def test_every_probe_gets_a_verdict_of_its_form(spec, one, tmp_path):
    (dialogue,) = items_of("positional_emotion", [positional()], tmp_path)
    for probe in PROBES:
        for item in (one, dialogue):
            rows = presented(item, probe)
            found = judge_rows(spec, Ears(), Weigher(), batch_of(rows))
            assert list(found["response_error"]) == [None] * len(rows)
            for row, said in zip(rows, found["response"], strict=True):
                from operators.audit.outcomes import read_reply

                assert read_reply(row, said).reason is None
                assert json.loads(said)["reasoning"].startswith("gain of each")


def test_text_probes_tell_the_emotion_and_the_reply_that_gains_most_is_chosen(spec, one):
    row = presented(one, "oracle")[0]
    (asked,) = questions(spec, row, told_texts(row["parts"], []))
    assert "User (in a tone that is angry): It is late." in asked.told and "User: unknown" in asked.untold
    assert sorted(asked.answers) == ["A reply to someone angry.", "A reply to someone sad."]
    assert decide({"probe": ["oracle"]}, 0, [np.array([0.1, 0.3])]) == "R2"
    assert decide({"probe": ["oracle"]}, 0, [np.array([0.3, 0.3])]) == "R1"  # a tie goes to the first


def test_heard_turns_are_transcripts_with_the_sounds_beside_speech(spec, one):
    row = presented(one, "pointwise")[0]
    texts = told_texts(row["parts"], Ears().reports(row["audio_uris"], None))
    assert texts[0] == "s1-0 (sounds: shout)" and set(texts[1:]) == {"s1-r0", "s1-r1"}
    empty = told_texts(row["parts"], [Report((), "", 1.0)] * 3)
    assert empty == ["...", "...", "..."]


def test_a_matching_compares_sums():
    gains = [np.array([1.0, 0.8]), np.array([0.9, 0.2])]  # 1.0 + 0.2 straight, 0.8 + 0.9 crossed
    assert decide({"probe": ["pairwise"]}, 0, gains) == {"CA": "R2", "CB": "R1"}
    assert decide({"probe": ["pairwise"]}, 0, gains[::-1]) == {"CA": "R1", "CB": "R2"}


def test_a_clip_that_cannot_be_heard_or_a_text_that_is_too_long_costs_its_row_alone(spec, one):
    good, bad = presented(one, "pointwise")
    bad = bad | {"audio_uris": ["/broken.wav", *bad["audio_uris"][1:]]}
    long = presented(one, "oracle")[0]
    long["parts"][0]["text"] = "word " * 100
    found = judge_rows(spec, Ears(), Weigher(), batch_of([bad, good, long]))
    assert found["response_error"][0] == "truncated_audio: broken"
    assert found["response_error"][1] is None and prediction(found["response"][1]).value in ("R1", "R2")
    assert found["response_error"][2].startswith("prompt_too_long")


def test_identical_voices_cannot_change_the_verdict(spec, one):
    class Deaf(Ears):
        def reports(self, uris, hashes):
            return [
                Report((("Speech", 1.0),), "the same words" if "-r" not in uri else uri[-6:], 1.0)
                for uri in uris
            ]

    found = judge_rows(spec, Deaf(), Weigher(), batch_of(presented(one, "pointwise")))
    assert found["response"][0] == found["response"][1]


def test_the_cascades_parts_are_part_of_identity(spec):
    from operators.fingerprint import fingerprint

    assert isinstance(spec.cascade, Cascade)
    from dataclasses import replace

    assert fingerprint(spec) != fingerprint(replace(spec, cascade=replace(spec.cascade, top_k=3)))
