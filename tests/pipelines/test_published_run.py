"""A published benchmark through the whole pipeline: tables per group and a prediction file that comes back as responses."""

import json

import pyarrow.parquet as pq
import pytest

from tests.operators.benchmarks.test_published import MMAR, mmar_folder
from tests.pipelines.cli import TOY_PATH, evaluated, own_ray

pytestmark = pytest.mark.weights


def run(folder, responses):
    return evaluated(
        folder,
        TOY_PATH,
        "scorers=toy",
        "benchmark=mmar",
        f"benchmark.path={folder.parent / 'mmar'}",
        "model=recorded",
        f"model.path={responses}",
    )


def test_predictions_and_groups(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDIO_REASONING_CACHE", str(tmp_path / "cache"))
    mmar_folder(tmp_path / "mmar")
    chain = "[PERCEPTION] speech [ANALYSIS] a [REASONING] b [ANSWER] {}"
    said = [chain.format("A woman"), chain.format("A man")]
    rows = [
        {"id": row["id"], "model": "../m", "response": text} for row, text in zip(MMAR, said, strict=True)
    ]
    (tmp_path / "said.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    with own_ray():
        first = run(tmp_path / "first", tmp_path / "said.jsonl")
        assert first.returncode == 0, first.stderr
        predictions = list((tmp_path / "first" / "run" / "predictions").iterdir())
        assert [path.name for path in predictions] == ["_m.json"]
        assert [row["model_prediction"] for row in json.loads(predictions[0].read_text())] == [
            "A woman",
            "A man",
        ]
        assert "| speech | 100.0 (1/1)" in (tmp_path / "first" / "run" / "summary.md").read_text()
        again = run(tmp_path / "again", predictions[0])
        assert again.returncode == 0, again.stderr
    answers = [
        pq.read_table(tmp_path / name / "run" / "results.parquet")["answer_index"].to_pylist()
        for name in ("first", "again")
    ]
    assert answers[0] == answers[1] == [1, 0]
