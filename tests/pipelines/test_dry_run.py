"""`dry_run=true` plans a run and starts nothing."""

import subprocess
import sys

import pytest

from pipelines import judge_audit, mugen_eval
from tests.pipelines.cli import ROOT, aria_eval, composed, evaluated


def test_the_plan_names_stages_columns_resources_and_rows(tmp_path):
    run = aria_eval(tmp_path, "+cluster=a6000x4", "dry_run=true", "judges=[gemini]")
    assert run.returncode == 0, run.stderr
    for words in (
        "a6000x4",
        "audio",
        "generate",
        "extract",
        "m1",
        "m6",
        "judge_gemini",
        "AcousticGrounding",
        "GPU",
        "response",
    ):
        assert words in run.stdout
    assert not (tmp_path / "store").exists() and not (tmp_path / "run").exists()


def test_a_plan_of_other_prompts_names_its_stages(tmp_path):
    command = [
        sys.executable,
        "-m",
        "pipelines.perturb",
        "model=qwen2_5_omni",
        "+cluster=a6000x4",
        "dry_run=true",
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    for words in ("audio", "generate", "extract", "GPU"):
        assert words in run.stdout


def test_a_dry_run_imports_neither_ray_nor_torch():
    code = (
        "import sys, runpy; sys.argv = ['aria_eval', 'dry_run=true', '+cluster=a6000x4'];"
        "runpy.run_module('pipelines.aria_eval', run_name='__main__');"
        "print('loaded:', sorted({'ray', 'torch', 'transformers', 'onnxruntime', 'scipy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "loaded: []" in run.stdout


def test_importing_operators_needs_neither_ray_nor_torch():
    code = (
        "import sys, pkgutil, importlib, operators;"
        "[importlib.import_module(m.name) for m in pkgutil.walk_packages(operators.__path__, 'operators.')];"
        "print('loaded:', sorted({'ray', 'torch', 'transformers', 'onnxruntime'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert "loaded: []" in run.stdout


def test_only_execution_imports_ray():
    importing = [
        path.relative_to(ROOT).as_posix()
        for folder in ("operators", "pipelines")
        for path in (ROOT / folder).rglob("*.py")
        if any(line.strip().startswith(("import ray", "from ray")) for line in path.read_text().splitlines())
    ]
    assert importing == ["pipelines/execution.py"]


@pytest.mark.parametrize("more", [(), ("+cluster=a6000x4",), ("judges=[gemini]",)])
def test_recorded_responses_are_planned_without_a_stage_that_generates(tmp_path, more):
    questions, responses = tmp_path / "m.jsonl", tmp_path / "r.jsonl"
    questions.write_text(
        '{"id": "q1", "question": "?", "choices": ["dog", "cat"], "answer": "dog", "audio": "a.wav"}\n'
    )
    responses.write_text('{"id": "q1", "response": "[ANSWER] dog"}\n')
    run = evaluated(
        tmp_path,
        *("benchmark=manifest", f"benchmark.path={questions}", "model=recorded", f"model.path={responses}"),
        *("dry_run=true", *more),
    )
    assert run.returncode == 0, run.stderr
    assert "generate" not in run.stdout and "ProbeAudio" in run.stdout
    assert ("judge_gemini" in run.stdout) == any("gemini" in word for word in more)
    extract = next(line for line in run.stdout.splitlines() if line.startswith("extract"))
    assert "1 rows" in extract


@pytest.mark.parametrize("pipeline", ["mugen_eval", "judge_audit"])
def test_recorded_answers_of_other_pipelines_are_planned_too(tmp_path, capsys, pipeline):
    answers = tmp_path / "r.jsonl"
    answers.write_text('{"id": "q1", "response": "A"}\n')
    run = {
        "mugen_eval": lambda config: mugen_eval.evaluate(config, tmp_path / "run", "r"),
        "judge_audit": lambda config: judge_audit.audit(config, "r", "r"),
    }[pipeline]
    run(composed("model=recorded", f"model.path={answers}", "dry_run=true", pipeline=pipeline))
    assert "dry run: nothing was started" in capsys.readouterr().out
