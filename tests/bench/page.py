"""How fast a report on 2,000 items x 9 models opens, filters and sorts in a real Chromium.

python -m tests.bench.page
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pyarrow as pa
from hydra import compose, initialize_config_dir

from operators.aggregate import finish_rows
from operators.schema import result_schema
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


def bench(folder: Path, n_items: int = 2000, n_models: int = 9) -> None:
    """Write the page and print what it took to write, to paint, and to filter."""
    models = [f"model-{letter}" for letter in "ABCDEFGHI"[:n_models]]
    rows = [
        row(f"item-{n:04d}", model, n, "a bark", chosen=n % 2) for n in range(n_items) for model in models
    ]
    run = write_run(folder / "run", finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))
    began = time.perf_counter()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        main(compose("report", overrides=[f"run={run}"]))
    print(f"{len(rows):,} rows: written in {time.perf_counter() - began:.1f} s")
    with opened() as tab:
        tab.goto((run / "report.html").as_uri())
        tab.wait_for_selector("body[data-ready]", state="attached", timeout=60_000)
        ready = tab.evaluate("performance.now()")
        print(
            f"first paint {tab.evaluate(PAINTED):.0f} ms, all sections and the list at the latest {ready:.0f} ms"
        )
        for act in ACTS:
            handled, painted = tab.evaluate(FILTERED, list(act))
            print(
                f"{act[0]} = {act[1]!r}: {handled:.0f} ms, painted after {painted:.0f} ms; {tab.inner_text('#count')}"
            )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        bench(Path(place))
