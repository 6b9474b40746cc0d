"""How fast a report on 2,000 items x 9 models opens, filters and sorts in a real Chromium.

python -m tests.bench.page
python -m tests.bench.page --trials 21      a MUGEN run of so many trials per item and model
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hydra import compose, initialize_config_dir

from operators.aggregate import finish_rows
from operators.mugen.presentation import MUGEN_ITEM
from operators.mugen.tables import AGREEMENT, CURVE, POSITIONS, SCALING, SUMMARY
from operators.mugen.votes import TRIALS, VOTES
from operators.schema import CLIPS, result_schema
from pipelines.config import CONF
from pipelines.report import main
from tests.browser import opened
from tests.report_toys import row, write_run

PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
# Milliseconds from the reader's act to the painted list: the handler, then two frames.
FILTERED = """([id, value]) => new Promise((done) => {
  const control = document.getElementById(id), began = performance.now();
  control.value = value;
  control.dispatchEvent(new Event(id === "q" ? "input" : "change"));
  const handled = performance.now();
  requestAnimationFrame(() => requestAnimationFrame(() => done([handled - began, performance.now() - began])));
})"""
ACTS = (("q", "item-19"), ("q", ""), ("model", "model-C"), ("outcome", "wrong"), ("sort", "aria down"))


TRIAL_ACTS = (
    ("q", "item-19"),
    ("q", ""),
    ("model", "model-C"),
    ("outcome", "wrong"),
    ("sort", "share_right down"),
)
N_WORDS = 60  # of a response


def trials_run(run: Path, n_trials: int, n_items: int = 2000, n_models: int = 9) -> int:
    """A MUGEN run's folder with items and trials of random words, and no summary; the number of trials."""
    rng, run_words = np.random.default_rng(0), [f"word{n}" for n in range(300)]
    run.mkdir(parents=True)
    items = [
        {"benchmark": "many", "item_id": f"item-{n:04d}", "category": f"dimension {n % 7}", "task": f"task {n % 35}",
         "question": f"Which clip of set {n} is the loudest?", "choices": list("12345"), "gold_index": n % 5,
         "n_reference": 0, "ranking": False}
        for n in range(n_items)
    ]  # fmt: skip
    with pq.ParquetWriter(run / "trials.parquet", TRIALS) as file:
        for model in "ABCDEFGHI"[:n_models]:
            rows = [
                _trial(item, f"model-{model}", n, rng, run_words) for item in items for n in range(n_trials)
            ]
            file.write_table(pa.Table.from_pylist(rows, schema=TRIALS))
    schemas = {"summary": SUMMARY, "scaling": SCALING, "curve": CURVE, "positions": POSITIONS,
               "agreement": AGREEMENT, "votes": VOTES}  # fmt: skip
    found = {name: schema.empty_table() for name, schema in schemas.items()}
    found["items"] = pa.Table.from_pylist(items, schema=pa.schema([*MUGEN_ITEM, *CLIPS]))
    for name, table in found.items():
        pq.write_table(table, run / f"{name}.parquet")
    (run / "run.json").write_text("{}")
    return n_items * n_models * n_trials


def _trial(item: dict, model: str, number: int, rng: np.random.Generator, words: list[str]) -> dict:
    order, place = rng.permutation(5).tolist(), int(rng.integers(5))
    about = {name: item[name] for name in ("benchmark", "item_id", "category", "task", "gold_index")}
    return about | {
        "model": model, "prompt": "direct", "permuted": True, "voting": True, "ranking": False, "n_reference": 0,
        "trial": number, "audio_order": order, "gold_position": order.index(item["gold_index"]),
        "response": " ".join(words[at] for at in rng.integers(len(words), size=N_WORDS)), "option_position": place,
        "option_stage": "number", "choice_index": order[place], "correct": order[place] == item["gold_index"],
    }  # fmt: skip


def responses_run(run: Path, n_items: int = 2000, n_models: int = 9) -> int:
    """An ARIA run's folder; the number of rows."""
    models = [f"model-{letter}" for letter in "ABCDEFGHI"[:n_models]]
    rows = [
        row(f"item-{n:04d}", model, n, "a bark", chosen=n % 2) for n in range(n_items) for model in models
    ]
    write_run(run, finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))
    return len(rows)


def bench(run: Path, n_rows: int, acts: tuple[tuple[str, str], ...]) -> None:
    """Write the page and print what it took to write, to paint, and to filter."""
    began = time.perf_counter()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        main(compose("report", overrides=[f"run={run}"]))
    size = (run / "report.html").stat().st_size / 1e6
    print(f"{n_rows:,} rows: {size:.0f} MB written in {time.perf_counter() - began:.1f} s")
    with opened() as tab:
        tab.goto((run / "report.html").as_uri())
        tab.wait_for_selector("body[data-ready]", state="attached", timeout=60_000)
        ready = tab.evaluate("performance.now()")
        print(
            f"first paint {tab.evaluate(PAINTED):.0f} ms, all sections and the list at the latest {ready:.0f} ms"
        )
        for act in acts:
            handled, painted = tab.evaluate(FILTERED, list(act))
            print(
                f"{act[0]} = {act[1]!r}: {handled:.0f} ms, painted after {painted:.0f} ms; {tab.inner_text('#count')}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=0)
    trials = parser.parse_args().trials
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        if trials:
            bench(folder, trials_run(folder, trials), TRIAL_ACTS)
        else:
            bench(folder, responses_run(folder), ACTS)
