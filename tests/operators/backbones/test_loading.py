"""Loading is silent, but not about weights that are missing; and every backbone says which version it is."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil

import pytest
from safetensors.torch import load_file, save_file

import operators.backbones
from operators.backbones.causal_lm import CausalLM
from operators.backbones.loading import refuse_missing
from operators.weights import Weights, WeightsError
from tests.operators.backbones.tiny_lm import save_tiny_qwen2


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return CausalLM(Weights(str(folder)))


def test_nothing_is_printed_even_about_weights_that_are_not_used(tmp_path, capfd):
    folder = save_tiny_qwen2(tmp_path / "lm")
    capfd.readouterr()
    change_weights(folder, lambda held: held.update(spare=next(iter(held.values())).clone())).load()
    assert capfd.readouterr() == ("", "")


def test_weights_drawn_at_random_are_refused(tmp_path):
    folder = save_tiny_qwen2(tmp_path / "lm")
    with pytest.raises(WeightsError, match=r"lacks 1 weights .*norm\.weight"):
        change_weights(folder, lambda held: held.pop("model.norm.weight")).load()
    refuse_missing({"missing_keys": set(), "unexpected_keys": {"spare"}}, folder)


def test_every_backbone_has_a_version():
    found = {}
    for module in pkgutil.iter_modules(operators.backbones.__path__, "operators.backbones."):
        members = inspect.getmembers(importlib.import_module(module.name), dataclasses.is_dataclass)
        found.update({name: kind for name, kind in members if hasattr(kind, "load")})
    assert {"CausalLM", "Clap", "GloVe", "MiniLMAdapter", "SentenceEncoder", "TagGrounding"} <= set(found)
    assert [name for name, kind in found.items() if not isinstance(getattr(kind, "version", None), int)] == []
