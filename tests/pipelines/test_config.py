"""Every option of every group composes and builds; wrong keys and types are named with what is allowed."""

import errno
import importlib
import re
import tomllib
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import get_class
from omegaconf import OmegaConf

import pipelines.rescore_settings  # noqa: F401 - registers the schema of compare
from operators.base import Resources, Stage
from operators.fingerprint import canonical
from operators.lalms.openai_chat import OpenAIChat
from operators.schema import METRICS
from operators.weights import WeightsError
from pipelines.config import CONF, ConfigError, RefuseCredentials, as_lists, build, entry, plain
from pipelines.memory import need
from tests.pipelines.cli import aria_eval, composed

NEEDS = {
    ("benchmark", "manifest"): ["benchmark.path=q.jsonl"],
    ("model", "recorded"): ["model.path=r.jsonl"],
    ("model", "transformers"): ["model.weights.source=org/name"],
    ("model", "vllm"): ["model.weights.source=org/name"],
    ("model", "openai"): ["model.endpoint.model=name"],
}


GROUPS = ("benchmark", "cluster", "model", "scorers")


def options():
    for folder in sorted(path for group in GROUPS for path in [CONF / group, *(CONF / group).glob("*/")]):
        for file in sorted(folder.glob("*.yaml")):
            yield folder.relative_to(CONF).as_posix(), file.stem


@pytest.mark.parametrize(("group", "option"), list(options()))
def test_every_option_composes_and_builds_without_weights(group, option):
    prefix = "+" if group == "cluster" else ""
    settings = plain(composed(f"{prefix}{group}={option}", *NEEDS.get((group, option), [])))
    for name in ("model", "benchmark"):
        assert build(getattr(settings, name), name) is not None
    if group == "model" and "weights" in settings.model and option not in ("transformers", "vllm"):
        assert settings.model["memory_gb"] > 0, "what it needs is checked against the cards before a run"
    for number, metric in enumerate(METRICS, start=1):
        spec = build(getattr(settings.scorers, f"m{number}"), f"scorers.m{number}")
        assert spec.writes[0] == metric
        try:
            canonical(spec)
        except WeightsError as error:
            # What a hub backbone or a download may lack; the message says what to set or where to look.
            assert "revision" in str(error) or "its config says how to get it" in str(error)


def test_leaving_the_cluster_out_runs_on_this_machine():
    assert plain(composed()).cluster.name == "local"
    assert plain(composed("+cluster=a6000x4")).cluster.num_gpus == 4


def test_a_list_needs_no_brackets_unless_it_is_a_sweep():
    keys = ("strategy", "n_candidates")
    words = [
        "n_candidates=2,3,4,5",
        "strategy=direct,apsc",
        "strategy=sc",
        "seed=1,2",
        "out=a,b",
        "model.n_candidates=2,3",
    ]
    assert as_lists(words, keys) == ["n_candidates=[2,3,4,5]", "strategy=[direct,apsc]", *words[2:]]
    assert as_lists([*words, "-m"], keys) == [*words, "-m"], "-m makes a job of each value"
    assert as_lists(["n_candidates=[2,3]", "n_candidates=2,"], keys) == [
        "n_candidates=[2,3]",
        "n_candidates=2,",
    ]
    assert as_lists(words, ()) == words
    assert as_lists(["run=runs/2026-01-31_a,../b.c"], ("run",)) == ["run=[runs/2026-01-31_a,../b.c]"]


def test_nothing_of_execution_reaches_a_fingerprint():
    cluster = {f.stem for f in Path(CONF / "cluster").glob("*.yaml")}
    assert cluster, "there is a cluster to try"
    for name in cluster:
        local, remote = plain(composed()), plain(composed(f"+cluster={name}", "store.root=elsewhere"))
        for number in range(1, 7):
            specs = [build(getattr(s.scorers, f"m{number}"), "m") for s in (local, remote)]
            assert canonical(specs[0]) == canonical(specs[1])


@pytest.mark.weights
@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("modle=cascade", ["'modle'", "did you mean 'model'", "benchmark"]),
        ("+modle=cascade", ["'modle'", "did you mean 'model'"]),
        ("model=cascde", ["cascde", "recorded"]),
        ("cluster.m3.actor=2", ["cluster.m3.actor", "did you mean 'actors'", "batch_size"]),
        ("+cluster.m3.actor=2", ["cluster.m3.actor", "actors"]),
        ("cluster.m3.actors=two", ["cluster.m3.actors", "two", "Integer"]),
        ("dry_run=perhaps", ["dry_run", "perhaps", "bool"]),
        ("max_failure_rate=high", ["max_failure_rate", "high"]),
        ("+scorers.m5.granularty=whole", ["scorers.m5.granularty", "did you mean 'granularity'"]),
        ("scorers.m5.granularity=wholly", ["scorers.m5.granularity", "wholly", "whole"]),
        ("benchmark=manifest", ["benchmark.path"]),
    ],
)
def test_a_wrong_key_or_value_is_named_with_what_is_allowed(tmp_path, override, said):
    run = aria_eval(tmp_path, override, "dry_run=true")
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    for words in said:
        assert words in run.stderr


def test_help_shows_groups_fields_and_examples(tmp_path):
    run = aria_eval(tmp_path, "--help")
    assert run.returncode == 0
    for words in ("benchmark=manifest", "cascade", "max_failure_rate", "+cluster=NAME"):
        assert words in run.stdout


def test_an_unknown_field_of_a_group_is_refused_when_built():
    with pytest.raises(ConfigError, match=r"unknown config key 'scorers\.m5\.limit'"):
        build(
            {"_target_": "operators.metrics.reasoning_progress.ReasoningProgress", "limit": 3}, "scorers.m5"
        )


# What the papers evaluate: ARIA's Table 1 and MUGEN's section 3.1, with its decoding (temperature, top-p).
ARIA_MODELS = (
    *("qwen2_audio", "qwen2_5_omni", "gemma_3n_e2b", "r1_aqa", "audio_reasoner", "audsemthinker"),
    *("phi_4_multimodal", "gpt4o_audio", "gemini_2_5_flash"),
)
MUGEN_MODELS = {
    "desta2_5_audio": (0.0, None), "qwen2_5_omni_vllm": (0.0, None), "audio_flamingo_3": (0.0, None),
    "voxtral_mini_3b": (0.2, 0.95), "voxtral_small_24b": (0.2, 0.95), "phi_4_multimodal": (0.0, None),
    "gemini_3_pro_low": (1.0, None), "gemini_3_pro_high": (1.0, None),
    "asr_gemini_3_pro_low": (1.0, None), "asr_gemini_3_pro_high": (1.0, None),
}  # fmt: skip


@pytest.mark.weights
@pytest.mark.parametrize("name", sorted({*ARIA_MODELS, *MUGEN_MODELS}))
def test_the_papers_models_have_the_papers_decoding_and_pinned_weights(name):
    spec = build(plain(composed(f"model={name}")).model, "model")
    assert spec.reads == ("question", "choices", "audio_uris", "audio_hashes", "trial")
    if name in MUGEN_MODELS:
        assert (spec.temperature, spec.top_p) == MUGEN_MODELS[name]
    if name in ARIA_MODELS:
        assert (spec.temperature, spec.max_new_tokens, spec.prompt.name) == (0.0, 2048, "cot_four_step")
    text = (CONF / "model" / f"{name}.yaml").read_text()
    for limit in ("max_clips", "max_seconds"):
        said = re.search(rf"^#.*\b{limit} null\b.*: ", text, re.M)
        assert bool(getattr(spec.limits, limit)) != bool(said), (
            f"{limit} is set, or the file says why it is not"
        )
    if isinstance(spec, OpenAIChat) and spec.sends_clips and spec.endpoint.prices:
        # Hosted, and no host documents more than 20 MB of audio: 25.4 MiB in base64.
        assert 0 < spec.max_request_mb <= 25.5
    if (recogniser := getattr(spec, "recogniser", None)) is not None:
        # large-v3 has 1.55 billion weights, in 16-bit numbers 3.1 GB.
        assert need([Stage("generate", spec, Resources())]) == recogniser.memory_gb == 3.1
        assert canonical(spec)["recogniser"]["weights"]["hub"].startswith("Systran/")
    weights = getattr(spec, "weights", None)
    if weights is not None:
        assert spec.limits.max_clips and spec.limits.max_seconds and spec.dtype == "bfloat16"
        if not re.fullmatch("[0-9a-f]{40}", weights.revision or ""):
            assert "revision: set it to" in text, "the file says what to set"
            with pytest.raises(WeightsError, match="set `revision` to a full commit hash"):
                canonical(spec)
        else:
            canonical(spec)


def test_models_that_need_further_packages_name_them_and_an_extra_has_them():
    extra = tomllib.loads((CONF.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "vision"
    ]
    for name, needed in (
        ("gemma_3n_e2b", {"timm", "torchvision"}),
        ("phi_4_multimodal", {"torchvision", "peft"}),
    ):
        spec = build(plain(composed(f"model={name}")).model, "model")
        assert set(spec.packages) == needed <= {re.match(r"\w+", line)[0] for line in extra}


def test_thinking_levels_are_different_models():
    low, high = (
        build(plain(composed(f"model=gemini_3_pro_{level}")).model, "model") for level in ("low", "high")
    )
    assert (low.endpoint.extra, high.endpoint.extra) == (
        {"reasoning_effort": "low"},
        {"reasoning_effort": "high"},
    )
    assert canonical(low) != canonical(high)


@pytest.mark.parametrize("file", sorted(CONF.glob("*.yaml")), ids=lambda file: file.stem)
def test_no_field_of_a_command_is_called_as_a_group_that_it_does_not_use(file):
    """Hydra would take `field=value` for a choice from that group; `+group=option` is said in the help."""
    defaults = OmegaConf.load(file).defaults
    used = {next(iter(entry)).split("@")[0] for entry in defaults if not isinstance(entry, str)}
    groups = {folder.name for folder in CONF.iterdir() if folder.is_dir()}
    with initialize_config_dir(str(CONF), version_base="1.3"):
        importlib.import_module(f"pipelines.{file.stem}")
        fields = compose(file.stem, overrides=["model=cascade"] if "model" in used else []).keys()
    added = {name for name in groups if f"+{name}=" in file.read_text() or name == "cluster"}
    assert groups & set(fields) <= used | added


@pytest.mark.parametrize("file", sorted(CONF.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_command_has_its_files_searched_for_secrets_before_hydra_writes_them(file):
    (watch,) = OmegaConf.load(file).hydra.callbacks.values()
    assert get_class(watch["_target_"]) is RefuseCredentials


def test_secrets_in_a_config_are_refused_by_key_and_what_only_looks_like_one_is_not():
    fine = {
        "base_url": "http://localhost:8000/v1",
        "help": "ask me@example.org or see https://x.org/a?b=c",
        "n": 3,
    }
    RefuseCredentials().on_run_start(OmegaConf.create({"model": fine, "none": None}))
    held = {"models": [fine, {"path": "https://x.org/a?api_key=hush"}]}
    with pytest.raises(
        SystemExit, match=r"config key models\.1\.path: its address comes with credentials"
    ) as ended:
        RefuseCredentials().on_multirun_start(OmegaConf.create(held))
    assert "hush" not in str(ended.value)


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (
            OSError(errno.ENOSPC, "in Arrow's words"),
            "error: No space left on device where this run writes its tables: make",
        ),
        (
            OSError(errno.EFBIG, "too large", "runs/a/x"),
            "error: File too large where this run writes its tables (runs/a/x)",
        ),
    ],
)
def test_a_full_disk_beside_the_store_is_no_traceback(monkeypatch, raised, told):
    def full(config):
        raise raised

    monkeypatch.setattr("sys.argv", ["compare", "last=a", "now=b"])
    with pytest.raises(SystemExit) as ended:
        entry("compare", full)
    assert str(ended.value).startswith(told) and "out=<folder on another disk>" in str(ended.value)


def test_another_error_of_the_system_is_not_taken_for_a_full_disk(monkeypatch):
    def broken(config):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("sys.argv", ["compare", "last=a", "now=b"])
    with pytest.raises(OSError, match="Input/output"):
        entry("compare", broken)
