"""Parts of a MUGEN run that need no Ray: its options compose, a judge is asked once, calibration is printed."""

import dataclasses
import json
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from hydra import compose, initialize_config_dir
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.benchmarks.sample import Sample
from operators.chat_api import ChatEndpoint, Reply
from operators.fingerprint import fingerprint
from operators.judges.option_judge import OptionJudge
from operators.lalms.hearing import AudioLimits
from operators.lalms.openai_chat import OpenAIChat
from operators.lalms.transformers_chat import TransformersChat
from operators.lalms.vllm_chat import VllmChat
from operators.mugen.options import Asked, RuleReader
from operators.mugen.presentation import DIMENSIONS, MUGEN_ITEM, GenerationSet
from operators.store import Store
from operators.weights import Weights
from pipelines import mugen_calibrate
from pipelines.config import CONF, ConfigError, build, plain
from pipelines.mugen_phases import fan_out, read_options
from pipelines.mugen_plan import (
    check_candidates,
    check_clips,
    clip_needs,
    load_items,
    read_plan,
    read_strategies,
    seeded,
    sets_of,
    voting_model,
)
from pipelines.preflight import check_counts, sized
from tests.mugen_toys import Loudest


def composed(*overrides, name="mugen_eval"):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(name, overrides=list(overrides))


def options(group):
    return sorted(path.stem for path in (Path(CONF) / group).glob("*.yaml"))


@pytest.mark.parametrize("name", options("strategy"))
def test_every_strategy_composes_and_builds(name):
    found = read_strategies(plain(composed(f"strategy={name}")))
    assert list(found) == [name]
    assert found[name].vote == ("sc" in name) and found[name].permute == ("apsc" in name)
    assert found[name].prompt == ("mugen_cot" if "cot" in name else "mugen_direct")


def test_several_strategies_in_one_run_share_four_sets():
    six = read_strategies(plain(composed("strategy=[direct,cot,sc,apsc,sc_cot,apsc_cot]")))
    assert set(sets_of(six, 10, False).values()) == {10} and len(sets_of(six, 10, False)) == 4
    with pytest.raises(ConfigError, match="choose a strategy"):
        read_strategies(plain(composed("strategy=[]")))


@pytest.mark.parametrize("name", options("reader"))
def test_every_reader_composes_and_builds(name):
    more = ["reader.chat.model=any"] if name == "judge" else []
    reader = build(plain(composed(f"reader={name}", *more)).reader, "reader")
    assert isinstance(reader, OptionJudge if name == "judge" else RuleReader)


def items(n=3, references=1):
    uris = [f"r{i}.wav" for i in range(references)] + [f"c{i}.wav" for i in range(5)]
    rows = [
        {"item_id": f"q{i}", "benchmark": "b", "question": f"Question {i}", "choices": [], "gold_index": i % 5,
         "audio_uris": uris, "category": next(iter(DIMENSIONS)), "n_reference": references, "ranking": False}
        for i in range(n)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=MUGEN_ITEM)


def test_rows_hold_no_sound_and_little_else_whatever_the_number_of_trials():
    sets = {GenerationSet("mugen_direct", True, False): 10, GenerationSet("mugen_cot", False, False): 1}
    rows = fan_out(items().to_pylist(), sets, [None], seed=0)
    assert rows.num_rows == 3 * 11
    (table,) = rows
    assert not any(pa.types.is_binary(f.type) or pa.types.is_floating(f.type) for f in table.schema)
    assert table.nbytes / table.num_rows < 2000
    before = pa.total_allocated_bytes()
    many = fan_out(items().to_pylist(), {GenerationSet("mugen_direct", True, False): 3000}, [None], seed=0)
    assert many.num_rows == 9000 and pa.total_allocated_bytes() - before < 100_000, "rows wait on disk"


def test_rows_come_item_by_item_and_those_of_the_same_clips_together():
    asked = items(4).to_pylist()
    for item, clips in zip(asked, ("rabcde", "rabcdf", "rbadce", "rabcdg"), strict=True):
        item["audio_hashes"] = list(clips)
    sets = {GenerationSet("mugen_direct", False, False): 1, GenerationSet("mugen_cot", True, False): 2}
    rows = pa.concat_tables(fan_out(asked, sets, [None], seed=0))
    assert rows["item_id"].to_pylist() == [name for name in ("q0", "q2", "q1", "q3") for _ in range(3)]
    assert rows["prompt"].to_pylist() == ["mugen_direct", "mugen_cot", "mugen_cot"] * 4
    assert rows["trial"].to_pylist() == [0, 0, 1] * 4


def test_clips_are_counted_against_what_a_model_takes():
    check_clips(Loudest(max_clips=6), items(), [None])
    check_clips(Loudest(max_clips=3), items(), [2])
    with pytest.raises(ConfigError, match="at most 5 clips, and 3 items need more"):
        check_clips(Loudest(max_clips=5), items(), [None])


def test_numbers_of_candidates_that_no_item_has_are_said_before_anything_starts(capsys):
    check_candidates(items(), [None])
    check_candidates(items(), [2, 5])
    assert not capsys.readouterr().err
    check_candidates(items(), [2, 6, 9])
    assert "no item has 6 or 9 candidates (ranking tasks left out, the most is 5)" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="n_candidates: no item has 9 candidates"):
        check_candidates(items(), [9])


def chat(kind, **limits):
    given = {"endpoint": ChatEndpoint("m")} if kind is OpenAIChat else {"weights": Weights("a/b", "0" * 40)}
    return kind(**given, limits=AudioLimits(**limits), prompt=None)


def test_vllm_takes_one_clip_unless_told_and_that_is_said_before_anything_starts(capsys):
    with pytest.raises(
        ConfigError, match=r"VllmChat takes at most 1 clips.*n_candidates, or a larger model\.limits"
    ):
        check_clips(chat(VllmChat), items(), [None])
    check_clips(chat(VllmChat, max_clips=6), items(), [None])
    check_clips(chat(VllmChat, over_many="skip"), items(), [None])
    assert chat(VllmChat, over_many="skip").known_limits.too_many(2).endswith("the model takes 1")
    assert not capsys.readouterr().err


@pytest.mark.parametrize("kind", [TransformersChat, OpenAIChat])
def test_a_model_of_unknown_limits_is_pointed_out_where_items_have_several_clips(kind, capsys):
    check_clips(chat(kind), items(), [None])
    assert "3 items have several (item 'q2': 6)" in capsys.readouterr().err
    check_clips(chat(kind, max_clips=6), items(), [None])
    check_counts(chat(kind), [(1, "q")], "")
    assert not capsys.readouterr().err


def test_an_engine_sets_memory_aside_for_the_clips_that_the_items_have():
    spec, needs = chat(VllmChat, max_clips=8), list(clip_needs(items(), [None]))
    told = sized(spec, needs)
    assert (spec.clips_at_once, told.clips_at_once) == (8, 6) and fingerprint(told) == fingerprint(spec)
    assert sized(spec, []).clips_at_once == 8 and sized(told, [(1, "q")]).clips_at_once == 6
    assert sized(chat(VllmChat, max_clips=2, over_many="skip"), needs).clips_at_once == 2, (
        "the rest is skipped"
    )
    api = chat(OpenAIChat)
    assert sized(api, needs) is api


def test_a_benchmark_whose_options_are_texts_is_refused():
    with pytest.raises(ConfigError, match="are texts, not clips"):
        load_items(Sample(limit=1))


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Counting:
    """A chat that says 2 to everything except to what it cannot format, and counts."""

    asked: ClassVar[list[str]] = []

    def connect(self):
        return self

    def ask(self, bodies):
        prompts = [body["messages"][0]["content"] for body in bodies]
        self.asked.extend(prompts)
        return [
            Reply("I refuse the format" if "odd" in text else "Explanation: x\nDecision: 2")
            for text in prompts
        ]


def trials(*responses):
    about = {"benchmark": "b", "item_id": "q0", "category": None, "n_reference": 1, "n_candidates": None}
    about |= {"model": "m", "prompt": "mugen_direct", "permuted": True, "voting": False, "gold_index": 0}
    about |= {"finish_reason": None, "usage": None, "response_error": None, "audio_order": [4, 0, 1, 2, 3]}
    return [about | {"trial": trial, "response": text} for trial, text in enumerate(responses)]


def test_a_judge_is_asked_once_per_distinct_response_and_its_failures_again(tmp_path):
    judge, store = OptionJudge(chat=Counting()), Store(str(tmp_path))
    rows = trials("the second", "the second", "odd")
    Counting.asked.clear()
    first = read_options(rows, judge, items(), store)
    assert len(Counting.asked) == 2, "the same words are asked once"
    # Position 1 of the order [4, 0, 1, 2, 3] is candidate 0, the right one.
    assert first["choice_index"].to_pylist() == [0, 0, None] and first["correct"].to_pylist() == [
        True,
        True,
        None,
    ]
    assert first["option_reason"].to_pylist() == [None, None, "judge_unparsed"]
    assert "Question 0" in Counting.asked[0], "the judge sees the question of the benchmark"
    Counting.asked.clear()
    assert read_options(rows, judge, items(), store).equals(first)
    assert len(Counting.asked) == 1 and "odd" in Counting.asked[0]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Leaving(Counting):
    """A chat that can no longer be reached after two replies."""

    def ask(self, bodies):
        if len(self.asked) == 2:
            return [Reply(reason="model_unavailable: any: quota_exhausted: HTTP 429") for _ in bodies]
        return super().ask(bodies)


def test_an_interrupted_judge_keeps_what_it_has_read(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.mugen_phases.READ_AT_ONCE", 2)
    store, rows = Store(str(tmp_path)), trials("one", "two", "three")
    # The chat is part of the judge's identity; here it is one and the same endpoint on a good and a bad day.
    chat = Leaving()
    Counting.asked.clear()
    with pytest.raises(
        ConfigError, match="reader: 1 of 1 responses could not be judged: model_unavailable: any"
    ):
        read_options(rows, OptionJudge(chat=chat), items(), store)
    Counting.asked.clear()
    read_options(rows, OptionJudge(chat=chat), items(), store)
    assert len(Counting.asked) == 1 and "three" in Counting.asked[0]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Stumbling(Counting):
    """A chat that fails on the word "bad", and is gone for good once it hears "gone"."""

    def ask(self, bodies):
        replies = super().ask(bodies)
        prompts = [body["messages"][0]["content"] for body in bodies]
        faults = {"bad": "server_error: HTTP 500", "gone": "model_unavailable: any: HTTP 404"}
        reasons = [next((why for word, why in faults.items() if word in text), None) for text in prompts]
        return [Reply(reason=why) if why else reply for why, reply in zip(reasons, replies, strict=True)]


def test_verdicts_beside_a_request_that_failed_are_kept(tmp_path):
    store, judge = Store(str(tmp_path)), OptionJudge(chat=Stumbling())
    Counting.asked.clear()
    done = read_options(trials("one", "bad", "three"), judge, items(), store)
    assert done["option_reason"].to_pylist() == [None, "judge_failed: server_error: HTTP 500", None]
    assert done["correct"].to_pylist() == [True, None, True]
    with pytest.raises(ConfigError, match="1 of 3 responses could not be judged: model_unavailable: any"):
        read_options(trials("one", "bad", "four", "gone"), judge, items(), store)
    Counting.asked.clear()
    read_options(trials("one", "bad", "three", "four"), judge, items(), store)
    assert len(Counting.asked) == 1 and "bad" in Counting.asked[0], "the others were kept"


def calibrated(folder, rows, capsys):
    path = folder / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    mugen_calibrate.main(composed(f"labels={path}", name="mugen_calibrate"))
    return capsys.readouterr().out


def test_calibration_prints_agreement_kappa_and_disagreements(tmp_path, capsys):
    rows = [("I'd say the third clip", 3), ("Audio 2 or Audio 3", None), ("Audio 2", 4), ("Audio 1", 1)]
    rows = [{"question": "?", "n_options": 5, "response": text, "selected": place} for text, place in rows]
    said = calibrated(tmp_path, rows, capsys)
    # 3 of 4 agree. Shares: Audio 3, none and Audio 1 each 1/4 x 1/4, Audio 2 and 4 on one side only: chance 3/16.
    # kappa = (3/4 - 3/16) / (1 - 3/16) = 9/13 = 0.692.
    assert "agreement 75.00% (3/4" in said and "kappa 0.692" in said
    assert "people 4, reader 2: 'Audio 2'" in said


def test_a_verdict_that_the_judge_lost_agrees_with_nobody(capsys):
    asked = [Asked("?", 5, text) for text in ("Audio 1", "Audio 2", "both")]
    lost = [None, None, "judge_unparsed"]
    mugen_calibrate.report([0, 2, None], lost, asked, [0, 1, None])
    said = capsys.readouterr().out
    assert "agreement 50.00% (1/2" in said, "not 2/3, though people saw no single option either"
    assert "1 verdicts of the judge could not be read and are left out; were all wrong: 33.33%" in said
    with pytest.raises(ConfigError, match="none of the judge's 1 verdicts"):
        mugen_calibrate.report([None], ["judge_unparsed"], asked[:1], [None])


def test_a_wrong_label_is_named_with_its_line(tmp_path, capsys):
    good = {"question": "?", "n_options": 5, "response": "Audio 1", "selected": 1}
    for bad, words in (
        ({"selected": 9}, "bad_selected"),
        ({"selected": "x"}, "bad_selected"),
        ({"n_options": 1}, "bad_selected"),
    ):
        with pytest.raises(ValueError, match=f"line 2: {words}"):
            calibrated(tmp_path, [good, good | bad], capsys)
    with pytest.raises(ConfigError, match="labels=my_labels"):
        mugen_calibrate.main(composed(name="mugen_calibrate"))


def test_a_model_brings_its_own_temperature_for_votes_and_the_user_has_the_last_word():
    model = build(plain(composed("model=qwen2_5_omni")).model, "model")
    assert (model.temperature, voting_model(model, {"temperature": None}).temperature) == (0.0, 0.2)
    assert voting_model(model, {"temperature": 0.7}).temperature == 0.7
    # Single answers do not become others by it: it is no part of the model's identity.
    assert fingerprint(model) == fingerprint(dataclasses.replace(model, voting_temperature=0.9))
    gemini = build(plain(composed("model=gemini_3_pro_low")).model, "model")
    assert voting_model(gemini, {}) is gemini and gemini.temperature == 1.0


def test_the_seed_of_a_run_redraws_what_is_sampled_and_nothing_that_is_greedy():
    greedy = TransformersChat(weights=Weights("org/model", "0" * 40))
    sampling = dataclasses.replace(greedy, temperature=0.2)
    own = dataclasses.replace(sampling, seed=5)
    assert seeded(greedy, 1) == greedy, "it would say the same, and be asked once more"
    assert seeded(sampling, 1).seed == 1 and seeded(own, 1) == own
    assert fingerprint(seeded(sampling, 0)) == fingerprint(sampling)
    assert seeded(Loudest(), 1) == Loudest(), "a model without a seed has none to change"


def test_a_plan_samples_its_votes_by_the_seed_of_the_run():
    asked = ["model=qwen2_5_omni", "strategy=[direct,sc]", "benchmark.limit=1"]
    first, second = (read_plan(plain(composed(*asked, f"seed={seed}"))) for seed in (0, 1))
    assert first.model == second.model and first.model.temperature == 0
    assert (first.voting.seed, second.voting.seed) == (0, 1)
