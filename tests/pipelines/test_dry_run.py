"""`dry_run=true` plans a run and starts nothing."""

import subprocess
import sys

from tests.pipelines.cli import ROOT, aria_eval


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
