"""One metric under two backbones on a real Ray: the same responses, each backbone's scores kept apart in the store."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig

from pipelines.ablate import ablate, main
from pipelines.config import CONF, ConfigError
from tests.pipelines.cli import ROOT
from tests.pipelines.test_aria_eval import question, recorded, said, tone, write_lines


def run(folder, *overrides):
    """One ablation over the store in `folder`, as a user runs it: what it printed."""
    where = [f"store.root={folder / 'store'}", f"out={folder / 'ablation'}", *overrides]
    command = [sys.executable, "-m", "pipelines.ablate", "--config-dir", str(ROOT / "tests" / "conf"), *where]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["metric=m7"], "one of m1, m2, m3, m4, m5, m6"),
        ([], "one of m1"),
        (["metric=m5", "backbones=[minilm_nli]"], "two or more .*roberta_large_mnli"),
        (["metric=m5", "backbones=[minilm_nli,bert]"], "unknown backbone 'bert'.*distilbert_mnli"),
        (["metric=m5", "backbones=[minilm_nli,'minilm_nli:granulary=whole']"], "did you mean 'granularity'"),
        (
            ["metric=m5", "backbones=[minilm_nli,'minilm_nli:granularity=sentence_minmax']"],
            "minilm_nli and minilm_nli:granularity=sentence_minmax are the same scorer",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_with_what_there_is(overrides, said):
    with pytest.raises(ConfigError, match=said), initialize_config_dir(str(CONF), version_base="1.3"):
        ablate(compose("ablate", overrides=overrides), "model")


def test_a_checkpoint_of_the_commands_own_is_in_the_models_name(monkeypatch):
    names = []
    monkeypatch.setattr("pipelines.ablate.ablate", lambda config, name: names.append(name))
    overrides = ["model=openai", "model.endpoint.model=tuned"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("ablate", overrides=overrides, return_hydra_config=True)
    monkeypatch.setattr(HydraConfig.instance(), "cfg", config)
    main(config)
    assert names == ["openai (tuned)"]


@pytest.mark.weights
def test_backbones_score_the_same_responses_once_each(tmp_path):
    for number in range(4):
        tone(tmp_path / f"{number}.wav", pitch=300 + 100 * number)
    write_lines(tmp_path / "q.jsonl", [question(n, f"{n}.wav") for n in range(4)])
    models = {"low": 1, "middle": 20, "high": 40}
    rows = [said(n, "word " * (length + n), model=name) for name, length in models.items() for n in range(4)]
    write_lines(tmp_path / "r.jsonl", rows)
    backbones = ["metric=m2", "backbones=[wide,narrow,'wide:scale=200']"]
    told = run(tmp_path, *backbones, *recorded(tmp_path), "yardsticks=false")
    means = {
        (row["model"], row["backbone"]): row["mean"]
        for row in pq.read_table(tmp_path / "ablation" / "means.parquet").to_pylist()
    }
    # Reasonings of n, n+1, n+2, n+3 words, n + 1.5 in the mean, out of 100, 50 and 200.
    assert means["low", "wide"] == pytest.approx(0.025) and means["high", "narrow"] == pytest.approx(0.83)
    assert means["middle", "wide:scale=200"] == pytest.approx(0.1075)
    assert "q    " in told and "1.000" in told, "the benchmark, and the ranks agree in full"
    again = run(tmp_path, *backbones, "stored=true")
    tallies = json.loads((tmp_path / "ablation" / "run.json").read_text())["backbones"]
    assert [tally["from_store"] for tally in tallies.values()] == [12] * 3, "also without the files"
    assert again.split("tables in")[0] == told.split("tables in")[0]
    text = (tmp_path / "ablation" / "ablation.md").read_text()
    assert text.count("\n| high |") == 1 and "W: Kendall's" in text
