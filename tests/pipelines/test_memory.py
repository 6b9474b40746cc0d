"""Models on cards, by hand: what they need, what a worker gets, and what is said where it does not fit."""

import pytest

from operators.backbones.causal_lm import CausalLM
from operators.base import Resources, Stage
from operators.fingerprint import fingerprint
from operators.lalms.openai_chat import ChatEndpoint, OpenAIChat
from operators.lalms.transformers_chat import TransformersChat
from operators.lalms.vllm_chat import VllmChat
from operators.metrics.chain_coverage import ChainCoverage
from operators.metrics.step_causality import StepCausality
from operators.weights import Weights
from pipelines import memory
from pipelines.config import Cluster
from pipelines.memory import check_memory, in_words, need
from pipelines.room import ResourceError

HUB = Weights("org/model", "0" * 40)
BOX = Cluster(name="box", gpu_memory_gb=48)


def stage(spec, name="generate", **needs):
    return Stage(name, spec, Resources(**needs))


def lm(**fields):
    return CausalLM(HUB, memory_gb=3, **fields)


def test_what_a_worker_needs():
    assert need([stage(TransformersChat(weights=HUB, memory_gb=17))]) == 17
    assert need([stage(TransformersChat(weights=HUB, memory_gb=17, dtype="float32"))]) == 34
    assert need([stage(TransformersChat(weights=HUB))]) == 0, "no figure: nothing is claimed"
    assert in_words([stage(TransformersChat(weights=HUB))], BOX).startswith("not known")
    assert in_words([stage(OpenAIChat(endpoint=ChatEndpoint("far")))], BOX) is None
    assert need([stage(OpenAIChat(endpoint=ChatEndpoint("far", base_url=None)))]) == 0
    coverage, causality = ChainCoverage(backbone=lm()), StepCausality(backbone=lm())
    assert need([stage(coverage, "m3"), stage(causality, "m4")]) == 6, "one copy in float32: 2 x 3"
    other = StepCausality(backbone=lm(dtype="bfloat16"))
    assert need([stage(coverage, "m3"), stage(other, "m4")]) == 9, "two copies: 2 x 3 + 3"


def test_memory_is_no_part_of_a_models_identity():
    for kind in (
        TransformersChat,
        VllmChat,
        lambda weights, **fields: ChainCoverage(backbone=CausalLM(weights, **fields)),
    ):
        assert fingerprint(kind(weights=HUB, memory_gb=17)) == fingerprint(kind(weights=HUB))


@pytest.mark.parametrize(
    ("gpus", "parallel", "cards"),
    [(1, None, 0.9), (2, None, 1.8), (4, 2, 1.8), (0.5, None, 0.5), (1, 2, 1.0)],
)
def test_an_engine_spreads_over_the_cards_of_its_worker(gpus, parallel, cards):
    spec = VllmChat(weights=HUB, gpu_memory=0.9, tensor_parallel=parallel)
    assert spec.usable_cards(gpus) == pytest.approx(cards)


def test_an_engine_that_needs_two_cards_is_refused_on_one_and_told_how_many():
    spec = VllmChat(weights=HUB, memory_gb=55)
    said = r"generate \(VllmChat\): by its memory_gb the model needs 55 GB at least, a worker gets 43.2 GB \(1 GPU of 48 GB, cluster box\)"
    with pytest.raises(ResourceError, match=said + r"; set cluster.generate.gpus=2"):
        check_memory([stage(spec, gpus=1)], BOX)
    check_memory([stage(spec, gpus=2)], BOX)
    with pytest.raises(ResourceError, match=r"cluster.generate.gpus=4"):  # 130 of 86.4, then of 172.8 GB
        check_memory([stage(VllmChat(weights=HUB, memory_gb=130), "generate_voting", gpus=2)], BOX)


def test_a_model_of_one_card_gains_nothing_from_a_second():
    spec = TransformersChat(weights=HUB, memory_gb=30, dtype="float32")
    with pytest.raises(ResourceError, match=r"needs 60 GB .* gets 48 GB .*it runs on one card"):
        check_memory([stage(spec, gpus=2)], BOX)
    with pytest.raises(ResourceError, match=r"gets 12 GB \(0.25 GPU of 48 GB.* set cluster.generate.gpus=1"):
        check_memory([stage(TransformersChat(weights=HUB, memory_gb=30), gpus=0.25)], BOX)


def test_stages_of_one_pool_add_up():
    pooled = {"gpus": 0.1, "pool": "scorers"}
    half = [stage(ChainCoverage(backbone=lm(dtype="bfloat16")), "m3", **pooled)]
    check_memory(half, BOX)  # 3 of 4.8
    with pytest.raises(ResourceError, match=r"m3 \(ChainCoverage\), m4 \(StepCausality\): .* 9 GB .* 4.8 GB"):
        check_memory([*half, stage(StepCausality(backbone=lm()), "m4", **pooled)], BOX)


def test_nothing_is_refused_where_nobody_says_what_cards_have():
    one = stage(VllmChat(weights=HUB, memory_gb=500), gpus=1)
    check_memory([one], Cluster())
    assert in_words([one], Cluster()) == (
        "500 GB at least, of cards whose memory cluster.gpu_memory_gb does not say"
    )


def test_main_memory_is_told_and_warned_of(monkeypatch, capsys):
    monkeypatch.setattr(memory, "main_memory", lambda: 16.0)
    small, large = (stage(TransformersChat(weights=HUB, memory_gb=gb)) for gb in (11, 17))
    check_memory([small], Cluster())
    assert capsys.readouterr().err == ""
    check_memory([large], Cluster())
    assert (
        "note: generate (TransformersChat): 17 GB at least, in main memory; this machine has 16 GB: too little"
        in (capsys.readouterr().err)
    )
    check_memory([large], Cluster(address="auto"))
    assert capsys.readouterr().err == "" and "this machine" not in in_words([large], Cluster(address="auto"))
