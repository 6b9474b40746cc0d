"""`--help` lists the groups that a command uses, each with every option that there is."""

import re
import subprocess
import sys

import pytest
from hydra.utils import get_class
from omegaconf import OmegaConf

from operators.benchmarks.emotions import EmotionAudit
from operators.benchmarks.mugen import Mugen
from operators.lalms.asking import Lalm
from pipelines.config import CONF
from tests.pipelines.cli import ROOT, composed

ALONE = ("build_mugen", "build_audit", "listen", "audit_validity")  # without Ray, so without a cluster
COMMANDS = ("aria_eval", "mugen_eval", "judge_audit", "stress", "rescore", "ablate", "perturb", *ALONE)


def listed(command):
    """{group: its options} as the help template spells them."""
    text = (CONF / f"{command}.yaml").read_text()
    choose = text.split("    template: |\n")[1].split("Choose one option")[1].split("Set any field")[0]
    lines = re.findall(r"^ {6}([\w/]+): (.+)$", choose, re.MULTILINE)
    return {group: options.split(", ") for group, options in lines}


def used(command):
    """The groups of the defaults list, groups within them, and the cluster where something runs on one."""
    groups = []
    for entry in OmegaConf.load(CONF / f"{command}.yaml").defaults:
        name = None if isinstance(entry, str) else next(iter(entry))
        if name and not name.startswith("override "):
            groups += [name, *(f"{name}/{inner.name}" for inner in sorted((CONF / name).glob("*/")))]
    return groups if command in ALONE else [*groups, "cluster"]


def accepted(command, group):
    """The options of a group; each command takes the benchmarks of its kind (Mugen's are questions too)."""
    files = sorted((CONF / group).glob("*.yaml"))
    if group == "benchmark":
        kinds = {file: get_class(OmegaConf.load(file)._target_) for file in files}
        audits = dict.fromkeys(("judge_audit", "listen", "audit_validity"), EmotionAudit)
        wanted = {"mugen_eval": Mugen, **audits}.get(command)
        files = [
            file
            for file, kind in kinds.items()
            if (issubclass(kind, wanted) if wanted else not issubclass(kind, EmotionAudit))
        ]
    if (command, group) == ("perturb", "model"):
        files = [file for file in files if is_prompted(file.stem)]
    return [file.stem for file in files]


def is_prompted(model):
    """Whether a model is given a prompt: only such a one can be given another."""
    return issubclass(get_class(composed(f"model={model}").model._target_), Lalm)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_lists_the_groups_of_its_command_and_all_their_options(command):
    assert listed(command) == {group: accepted(command, group) for group in used(command)}


def test_calibration_has_a_help_and_fields_of_its_own():
    text = (CONF / "mugen_calibrate.yaml").read_text()
    assert f"reader: {', '.join(accepted('mugen_calibrate', 'reader'))}" in text
    assert "labels" not in (CONF / "mugen_eval.yaml").read_text()


@pytest.mark.parametrize("command", ["mugen_eval", "build_mugen", "build_audit"])
def test_a_user_sees_the_list_and_the_fields(command):
    arguments = [sys.executable, "-m", f"pipelines.{command}", "--help"]
    shown = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert shown.returncode == 0, shown.stderr
    for group, options in listed(command).items():
        assert f"{group}: {', '.join(options)}" in shown.stdout
    assert "$" not in shown.stdout and f"python -m pipelines.{command}" in shown.stdout
