"""A wrong key or value is named by its whole path, with what is allowed exactly there; secrets are never repeated."""

import pytest
from hydra.errors import HydraException
from omegaconf import OmegaConf

import pipelines.ablate_settings
import pipelines.build_mugen_settings
import pipelines.rescore_settings  # noqa: F401 - registers the schema of rescore
from operators.chat_api import ChatEndpoint
from pipelines.config import (
    CONF,
    AriaEval,
    ConfigError,
    Scorers,
    StoreConfig,
    build,
    plain,
    refuse_credentials,
)
from pipelines.config_errors import explain_composition, refuse_no_option, with_choices_for_help
from pipelines.store_settings import StoreCommand
from tests.pipelines.cli import composed

CHAT = OmegaConf.create(
    {
        "_target_": "operators.lalms.openai_chat.OpenAIChat",
        "endpoint": {"_target_": "operators.chat_api.ChatEndpoint", "model": "m"},
        "prompt": {"_target_": "operators.prompts.Prompt", "name": "cot_four_step"},
        "limits": {"_target_": "operators.lalms.hearing.AudioLimits"},
    }
)
VLLM = OmegaConf.create(
    {
        "_target_": "operators.lalms.vllm_chat.VllmChat",
        "weights": {"_target_": "operators.weights.Weights", "source": "x"},
    }
)


def said(body, field, value):
    """What `build` says of the model `body` with one field set, dots leading into it."""
    body = OmegaConf.create(OmegaConf.to_container(body))
    OmegaConf.update(body, field, value, force_add=True)
    with pytest.raises(ConfigError) as error:
        build(OmegaConf.to_container(body), "model")
    return str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("endpoint.retires", 1, "unknown config key 'model.endpoint.retires', did you mean 'retries'? Allowed"),
        ("limits.typo", 1, "'model.limits.typo'. Allowed here: max_clips, max_seconds, max_total_seconds"),
        ("endpoint.prices", {"prompt": 1, "completion": 2, "adio": 3},
         "'model.endpoint.prices.adio', did you mean 'audio'? Allowed here: audio, completion, prompt"),
        ("limits.over_long", "foo", "config key model.limits.over_long: Input should be 'stop', 'skip' or"),
        ("endpoint.max_tokens", "x", "config key model.endpoint.max_tokens: Input should be a valid integer"),
        ("prompt.name", "nothere", "config key model.prompt.name: no prompt 'nothere': give one of audit_cue"),
        ("prompt.name", ["n" * 200], "config key model.prompt.name: Input should be a valid string"),
        ("typo", 1, "unknown config key 'model.typo'. Allowed here: endpoint, limits, max_new_tokens"),
    ],
)  # fmt: skip
def test_a_nested_key_is_named_whole_with_what_its_own_object_allows(field, value, words):
    assert words in said(CHAT, field, value)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (None, "config key scorers.m1: an option is needed here (scorers/m1=NAME), or a mapping with _target_, not None"),
        (3, "config key scorers.m1: an option is needed here"),
        ({"slope": 1.0}, "not {'slope': 1.0}"),
        ({"_target_": "x.Y", "backbone": {"slope": [1.0, float("nan")]}},
         "config key scorers.m1.backbone.slope.1: a finite number is needed, not nan"),
        ({"_target_": "operators.backbones.tag_grounding.TagGrounding", "temperature": 0.0},
         "config key scorers.m1.temperature: Input should be greater than 0, not 0.0"),
    ],
)  # fmt: skip
def test_what_is_no_step_or_no_number_is_named_by_its_key(node, words):
    with pytest.raises(ConfigError) as error:
        build(node, "scorers.m1")
    assert words in str(error.value)


@pytest.mark.parametrize(
    "word",
    [
        "model=null",
        "~model",
        "~model=cascade",
        "model=",
        "scorers/m1=null",
        "+cluster=null",
        "+cluster=3",
        "model=True",
    ],
)
def test_a_group_without_an_option_is_refused_with_its_options(word):
    group = word.strip("+~").partition("=")[0]
    with pytest.raises(
        SystemExit, match=rf"^error: config key {group}: .*leave it out, or choose {group}=NAME of "
    ):
        refuse_no_option(["dry_run=true", word], CONF, "aria_eval")
    refuse_no_option(
        ["model=cascade", "out=", "store.root=null", "+cluster=a6000x4", "scorers.m1=null"], CONF, "aria_eval"
    )


def test_help_needs_no_choice():
    assert with_choices_for_help(["--help"], CONF, "perturb")[1].startswith("model=")
    for given in (["--help", "model=openai"], ["benchmark=sample"], []):
        assert with_choices_for_help(given, CONF, "perturb") == given
    assert with_choices_for_help(["--help"], CONF, "aria_eval") == ["--help"]


def test_a_group_of_which_any_number_may_be_chosen_may_be_emptied():
    refuse_no_option(["~corpora", "~tasks"], CONF, "build_mugen")
    for word, name in (
        ("corpora=null", "build_mugen"),
        ("judges=null", "aria_eval"),
        ("~judges", "aria_eval"),
    ):
        with pytest.raises(SystemExit, match=f"{word} is no choice; leave it out, or choose"):
            refuse_no_option([word], CONF, name)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("cluster.num_cpus=-1", "config key cluster.num_cpus: at least 1, not -1"),
        ("cluster.num_gpus=-1", "config key cluster.num_gpus: at least 0, not -1"),
        ("cluster.object_store_mb=-5", "config key cluster.object_store_mb: at least 1, not -5"),
        ("cluster.gpu_memory_gb=nan", "config key cluster.gpu_memory_gb: at least 0, not nan"),
        ("cluster.m1.cpus=nan", "config key cluster.m1.cpus: at least 0, not nan"),
        ("cluster.m1.actors=0", "config key cluster.m1.actors: at least 1, not 0"),
    ],
)
def test_resources_that_no_machine_has_are_refused(override, words):
    with pytest.raises(ConfigError, match=f"^{words}$"):
        plain(composed(override))


def test_portions_of_no_rows_are_refused():
    with pytest.raises(ConfigError, match=r"^config key rows_at_once: at least 1, not 0$"):
        plain(composed("rows_at_once=0", pipeline="rescore"))


def test_a_rule_between_fields_is_said_without_all_of_their_values():
    assert said(CHAT, "endpoint.spend_limit", 5) == (
        "config key model.endpoint: a spend_limit needs prices: prices.prompt and prices.completion per million tokens"
    )


def test_a_class_that_is_not_there_is_named_with_its_key():
    words = said(CHAT, "limits._target_", "operators.nothing.Here")
    assert words == "model.limits: Error locating target 'operators.nothing.Here'"


def test_a_long_wrong_value_is_cut():
    words = said(CHAT, "endpoint.max_tokens", "x" * 500)
    assert words.endswith(f", not '{'x' * 76}...")  # 80 characters, the first quote among them


@pytest.mark.parametrize(
    ("body", "field", "value", "words"),
    [
        (CHAT, "endpoint.concurrency", 0, "greater than or equal to 1, not 0"),
        (CHAT, "endpoint.retries", -1, "greater than or equal to 0, not -1"),
        (CHAT, "endpoint.timeout_seconds", -3, "greater than 0, not -3"),
        (CHAT, "endpoint.give_up_after", 0, "greater than or equal to 1, not 0"),
        (VLLM, "gpu_memory", 7, "less than or equal to 1, not 7"),
        (VLLM, "gpu_memory", 0, "greater than 0, not 0"),
        (VLLM, "rows_in_flight", 0, "greater than or equal to 1, not 0"),
    ],
)
def test_numbers_that_cannot_run_are_refused_before_the_plan(body, field, value, words):
    assert said(body, field, value) == f"config key model.{field}: Input should be {words}"


def test_a_key_in_the_wrong_place_is_refused_and_never_repeated():
    for key in ("AIzaSyAbcdefg1234567", "sk-abcdefghijkl"):
        words = said(CHAT, "endpoint.key_variable", key)
        assert words == (
            "config key model.endpoint.key_variable: this is the name of an environment variable, never the key itself"
        )
        assert "model.endpoint.extra: headers.0.auth holds a key" in (
            words := said(CHAT, "endpoint.extra", {"headers": [{"auth": f"Bearer {key}"}]})
        )
        assert key not in words and key not in said(CHAT, "endpoint.max_tokens", key)
        with pytest.raises(SystemExit, match=r"^error: a\.b: this looks like an API key") as ended:
            refuse_credentials(["dry_run=true", f"+a.b={key}"])
        assert key not in str(ended.value)
    assert "extra: api_key holds a key" in said(CHAT, "endpoint.extra", {"api_key": "hush"})


def test_a_key_without_a_known_beginning_is_no_name_of_a_variable_unless_one_is_set(monkeypatch):
    key = "zq7Kx9LmPw3Vt8RbYc2N"
    words = said(CHAT, "endpoint.key_variable", key)
    assert "never the key itself" in words and key not in words
    with pytest.raises(SystemExit, match=r"key_variable: this looks like an API key") as ended:
        refuse_credentials([f"model.endpoint.key_variable='{key}'"])
    assert key not in str(ended.value)
    monkeypatch.setenv(key, "a key")
    refuse_credentials([f"model.endpoint.key_variable={key}", "m.key_variable=ONE_KEY,OTHER_KEY"])
    ChatEndpoint("tiny", key_variable=key).check()


def test_what_only_resembles_a_key_is_taken():
    refuse_credentials(["model.endpoint.key_variable=KEY_OF_2024_GEMINI", "out=runs/sk-learn-audio"])
    body = OmegaConf.merge(
        CHAT,
        {
            "endpoint": {
                "key_variable": "KEY_OF_2024_GEMINI",
                "extra": {"prompt_cache_key": "audio", "min_tokens": 3, "note": "key takeaways, 2024"},
            }
        },
    )
    assert build(OmegaConf.to_container(body), "model").endpoint.extra["prompt_cache_key"] == "audio"


@pytest.mark.parametrize("root", ["", " "])
def test_an_empty_store_names_its_key(root):
    with pytest.raises(ConfigError, match=r"^config key store\.root: name a folder"):
        plain(OmegaConf.structured(StoreCommand(command="ls", store=StoreConfig(root))))


def test_a_value_left_out_names_its_key():
    config = OmegaConf.structured(AriaEval(model=CHAT, benchmark={}, scorers=Scorers(*[{}] * 5)))
    config.model.endpoint.model = "???"
    with pytest.raises(ConfigError, match=r"^set model\.endpoint\.model=\.\.\., scorers\.m6=\.\.\.$"):
        plain(config)


@pytest.mark.weights
@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("judges=[foo]", "judges has no option 'foo'. Allowed here: deepseek, gemini"),
        ("model=cascde", "model has no option 'cascde', did you mean 'cascade'? Allowed here: asr_gemini"),
        ("scorers.m3.mood=1", "'scorers.m3.mood', did you mean 'mode'? Allowed here: backbone, max_input_tokens,"),
        ("scorers.m3.max_tries=1", "config key scorers.m3.max_tries: no file sets it, so it is added: +scorers.m3"),
        ("judges.foo.x=1", "unknown config key 'judges.foo'. A further one is added: +judges.foo=..."),
    ],
)  # fmt: skip
def test_what_does_not_compose_is_named_with_what_is_allowed(override, words):
    with pytest.raises(HydraException) as error:
        composed(override)
    assert words in explain_composition(error.value)


@pytest.mark.parametrize(
    ("pipeline", "override", "words"),
    [
        ("store", "store=/data/store", "config key store: it has keys of its own: set store.root=..."),
        (
            "store",
            "forget=abc",
            "config key forget: a list is needed: 'forget=[A,B]', or 'forget=[A]' for one",
        ),
        ("ablate", "backbones=smollm2", "config key backbones: a list is needed"),
        (
            "aria_eval",
            "cluster.m1=3",
            "config key cluster.m1: it has keys of its own: set cluster.m1.cpus=..., ",
        ),
        ("store", "delete=maybe", "config key delete: Value 'maybe' is not a valid bool"),
    ],
)
def test_one_value_where_a_mapping_or_a_list_stands_is_told_what_to_write(pipeline, override, words):
    with pytest.raises(HydraException) as error:
        composed(override, pipeline=pipeline)
    assert explain_composition(error.value).startswith(words)
