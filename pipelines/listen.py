"""Human validation of an audit: make the listening page, or read what listeners saved.

python -m pipelines.listen benchmark=single_turn_emotions               listen.html, one file, no server
python -m pipelines.listen exports=[anna.json,ben.csv]                  accuracy per listener, agreement
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from random import Random

from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tqdm import tqdm

from operators.audio import AudioError
from operators.audit.listening import agreement, listeners, listening_page, read_exports
from operators.export import write_all
from operators.printing import printable
from pipelines.config import ConfigError, build, entry, plain
from pipelines.listen_settings import Listen


def main(config: DictConfig) -> None:
    settings: Listen = plain(config)
    if settings.exports:
        read_back(settings.exports, Path(settings.output))
    else:
        make_page(settings)


def make_page(settings: Listen) -> None:
    """Write the page for a sample of the benchmark's items."""
    if settings.n_items < 1:
        raise ConfigError(f"config key n_items: at least 1, not {settings.n_items}")
    rows = build(settings.benchmark, "benchmark").load().to_pylist()
    usable = [row for row in rows if not row["item_error"]]
    for row in rows:
        if row["item_error"]:
            print(f"left out: {row['item_id']}: {row['item_error']}", file=sys.stderr)
    if not usable:
        raise ConfigError("the benchmark has no usable item")
    drawn = sorted(Random(settings.seed).sample(range(len(usable)), min(settings.n_items, len(usable))))
    items = [usable[place] for place in tqdm(drawn, desc="items", unit="item")]
    try:
        text = listening_page(items, usable[0]["benchmark"], settings.title, settings.both_branches)
    except AudioError as error:
        raise ConfigError(f"a clip cannot be put into the page: {error}") from error
    path = Path(settings.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
    print(f"{len(items)} of {len(usable)} items, {len(text) / 1e6:.1f} MB: {path}; open it in any browser")
    print("then: python -m pipelines.listen exports=[...] with the files that listeners saved")


def read_back(exports: list[str], output: Path) -> None:
    """Print, and write beside `output`, accuracy per listener and their agreement."""
    ratings = read_exports(exports)
    found = listeners(ratings)
    table = Table("listener", "rated", "cannot tell", "right", "accuracy", "95% interval", "chose A")
    for row in found.to_pylist():
        shown = ["-"] * 3
        if row["n_rated"]:
            interval = f"{100 * row['wilson_low']:.1f} to {100 * row['wilson_high']:.1f}"
            first = f"{100 * row['chose_first']:.0f}%\n{100 * row['first_low']:.0f} to {100 * row['first_high']:.0f}"
            shown = [f"{100 * row['accuracy']:.1f}%", interval, first]
        counts = (str(row[key]) for key in ("n_rated", "n_cannot_tell", "n_correct"))
        table.add_row(Text(printable(row["listener"])), *counts, *shown)
    Console().print(table)
    alpha = agreement(ratings)
    told = (
        "not defined: no two listeners answered one case, or all answers are equal"
        if math.isnan(alpha)
        else f"{alpha:.3f}"
    )
    print(f"Krippendorff's alpha (nominal, missing ratings left missing): {told}")
    folder = output.with_suffix("") if output.suffix else output
    write_all(folder, "listeners", found)
    print(f"tables are in {folder}")


if __name__ == "__main__":
    entry("listen", main)
