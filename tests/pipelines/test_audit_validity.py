"""`audit_validity` on finished runs of `judge_audit`: two judges, two sets of items, pairing by the judge's name."""

import csv
import json

import pytest

from operators.benchmarks.emotions import EmotionAudit
from tests.pipelines.test_build_audit import run

pytestmark = pytest.mark.weights


def verdicts(path, wrong_items=()):
    """Recorded replies on the built-in single-turn items: `ears` is right but on `wrong_items`, `deaf` says the first label."""
    lines = []
    for item in EmotionAudit("single_turn_emotions").load().to_pylist():
        emotions = sorted(branch[0]["emotion"] for branch in item["branches"])
        for branch in (0, 1):
            heard = emotions.index(item["branches"][branch][0]["emotion"])
            right = {"pointwise": f"R{branch + 1}", "oracle": f"R{branch + 1}", "perception": f"E{heard + 1}"}
            for probe, label in right.items():
                missed = probe == "pointwise" and item["item_id"] in wrong_items
                said = {
                    "ears": label[0] + ("2" if label[1] == "1" else "1") if missed else label,
                    "deaf": f"{label[0]}1",
                }
                lines += [
                    {"id": item["item_id"], "model": model, "probe": probe, "branch": branch, "swapped": False,
                     "response": json.dumps({"pred": pred})}
                    for model, pred in said.items()
                ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def audited(folder, name, **changes):
    path = verdicts(folder / f"{name}.jsonl", **changes)
    done = run(
        "judge_audit", "model=recorded", f"model.path={path}", "probes=[pointwise,perception,oracle]", "cues=[none]",
        "controls=[]", f"out={folder / name}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / name


def rows(path):
    with path.open() as file:
        return {row["model"] if "model" in row else row["probe"]: row for row in csv.DictReader(file)}


def test_two_runs_are_compared_judge_by_judge(tmp_path):
    first, second = audited(tmp_path, "tts"), audited(tmp_path, "real", wrong_items=("lunch",))
    pair = [f"first=[{first}]", f"second=[{second}]"]
    done = run("audit_validity", "check=real_vs_synthetic", *pair, f"out={tmp_path / 'a'}")
    assert done.returncode == 0, done.stderr
    profiles = rows(tmp_path / "a" / "profiles.csv")
    assert float(profiles["deaf"]["pearson"]) == pytest.approx(1) and float(
        profiles["deaf"]["slope"]
    ) == pytest.approx(1)
    # ears: 8 of 8 instances in 111, then 6 in 111 and 2 in 110: the masses move by 2/8
    assert float(profiles["ears"]["largest_difference"]) == pytest.approx(0.25)
    assert profiles["all judges"]["n_first"] == "16"

    done = run("audit_validity", "check=generator_swap", *pair, f"out={tmp_path / 'b'}")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "b" / "swaps.csv").open() as file:
        swaps = {(row["model"], row["probe"]): row for row in csv.DictReader(file)}
    assert float(swaps["ears", "pointwise"]["difference"]) == pytest.approx(-0.25)
    assert float(swaps["deaf", "pointwise"]["accuracy_first"]) == 0.5
    assert rows(tmp_path / "b" / "rankings.csv")["pointwise"]["same_order"] == "true"

    for arguments, said in (
        (["check=real_vs_synthetic", pair[0]], "config key second"),
        (["check=swap", *pair], "one of real_vs_synthetic, generator_swap, response_balance"),
        (["check=generator_swap", pair[0], f"second=[{tmp_path}]"], "holds no accuracy.parquet"),
    ):
        done = run("audit_validity", *arguments)
        assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
