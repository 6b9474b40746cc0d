"""Look after a store: what it holds, whether it is sound, fewer files, less waste, one table of it all.

python -m pipelines.store ls store.root=s3://bucket/prefix
python -m pipelines.store verify | compact | gc | export out=scores.parquet
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryFile

from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tqdm import tqdm

from operators import exporting, sweeping
from operators.inspection import contents, findings, names, night_findings
from operators.locators import shown
from operators.merging import merge
from operators.nights import finished
from operators.printing import MIN_WIDTH, printable
from operators.store import DamagedPart, Store, StoreError
from pipelines.config import ConfigError, entry, plain, unknown_key
from pipelines.store_settings import StoreCommand


def main(config: DictConfig) -> None:
    """Run the command that the config names."""
    settings: StoreCommand = plain(config)
    if settings.command not in COMMANDS:
        said = f"{unknown_key(settings.command, list(COMMANDS))}" if settings.command else "name a command"
        raise ConfigError(
            f"{said.replace('config key', 'command')}: python -m pipelines.store {'|'.join(COMMANDS)}"
        )
    store = Store(settings.store.root)
    if not any(store.entries(name) for name in ("responses", "asked", "scores", "nightly")):
        raise StoreError(
            f"there is no store at {shown(store.root)}: set store.root=<folder or s3://bucket/prefix>"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("always", DamagedPart)
        COMMANDS[settings.command](store, settings)


def ls(store: Store, settings: StoreCommand) -> None:
    """One line per model and scorer, and one per series of nights."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("What", "Of", "Fingerprint", "Rows", "Parts", "Size", "Last written", "Damaged"):
        table.add_column(name, justify="right" if name in ("Rows", "Parts", "Size", "Damaged") else "left")
    rows = n_bytes = 0
    asked = {shelf.name.rsplit("/", 1)[-1]: names(shelf) for shelf in store.shelves("asked")}
    for shelf in store.shelves():
        found, (kind, *middle, fingerprint) = contents(shelf), shelf.name.split("/")
        known = "\n".join(asked.get(fingerprint, [])) if kind != "scores" else ""
        of = f"{middle[0]}\n{found.spec}" if middle else known or found.spec
        cells = [kind, of, fingerprint, f"{found.rows:,}", f"{found.n_parts:,}", size(found.n_bytes)]
        cells += [when(found.newest), str(found.n_damaged or "")]
        table.add_row(*(Text("\n".join(printable(line) for line in cell.split("\n"))) for cell in cells))
        rows, n_bytes = rows + found.rows, n_bytes + found.n_bytes
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH + 20)
    console.print(Text(f"store {shown(store.root)}: {rows:,} rows, {size(n_bytes)}", style="bold"))
    console.print(table)
    for series in store.folders("nightly"):
        nights = finished(store, series)
        last = f", the last {nights[-1]}" if nights else ""
        console.print(Text(f"nightly series {printable(series)}: {len(nights)} nights{last}"))


def verify(store: Store, settings: StoreCommand) -> None:
    """Read everything; exit status 1 where something is lost or wrong."""
    shelves, found = list(store.shelves()), []
    for shelf in tqdm(shelves, desc="verify", unit="shelf"):
        found += findings(shelf)
    found += night_findings(store)
    for one in found:
        print(f"{'WRONG' if one.grave else 'note '}  {printable_path(one.place)}: {one.text}")
    grave = sum(one.grave for one in found)
    print(f"{len(shelves)} shelves read: {grave} wrong, {len(found) - grave} notes")
    if grave:
        sys.exit(
            "error: what is wrong is listed above; damaged rows are computed again by the next run that needs them"
        )


def compact(store: Store, settings: StoreCommand) -> None:
    """Merge small parts; runs may go on reading and writing meanwhile."""
    before = after = repeats = 0
    for shelf in tqdm(list(store.shelves()), desc="compact", unit="shelf"):
        done = merge(shelf)
        before, after, repeats = before + done.parts_before, after + done.parts_after, repeats + done.repeats
    print(f"{before:,} parts are now {after:,}; {repeats:,} repeated rows left out, no other row touched")


def gc(store: Store, settings: StoreCommand) -> None:
    """List what is of no more use, and remove it where delete=true."""
    if settings.keep_nights is not None and settings.keep_nights < 1:
        raise ConfigError("config key keep_nights: at least 1, the night to compare with")
    known = {shelf.name.rsplit("/", 1)[-1] for shelf in store.shelves()}
    if unknown := sorted(set(settings.forget) - known):
        raise ConfigError(f"config key forget: the store has no fingerprint {unknown[0]!r}; ls lists them")
    found = list(sweeping.waste(store, settings.keep_nights, settings.forget))
    for one in found:
        print(f"{size(one.n_bytes):>9}  {printable_path(one.name)}: {one.why}")
        if settings.delete:
            sweeping.remove(store, one)
    total = size(sum(one.n_bytes for one in found))
    if not found:
        print("nothing to remove")
    elif settings.delete:
        print(f"removed {len(found)} files or folders, {total}")
    else:
        print(f"{len(found)} files or folders, {total}: nothing was removed; delete=true removes them")


def export(store: Store, settings: StoreCommand) -> None:
    """Write one table of all scores or responses."""
    path = Path(settings.out or "")
    if path.suffix not in (".parquet", ".csv"):
        raise ConfigError("set out=<file>.parquet or out=<file>.csv")
    if settings.kind not in exporting.KINDS:
        raise ConfigError(f"config key kind: one of {', '.join(exporting.KINDS)}, not {settings.kind!r}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except OSError as error:
        raise ConfigError(f"config key out: nothing can be written to {path} ({error.strerror})") from error
    try:
        rows = exporting.export(store, settings.kind, path)
    except FileNotFoundError as error:
        raise StoreError("parts were merged while they were exported: run the same command again") from error
    except OSError as error:
        raise ConfigError(f"config key out: {path} cannot be written ({error.strerror or error})") from error
    print(
        f"{rows:,} {settings.kind} in {path}"
        if rows
        else f"the store holds no {settings.kind}: nothing was written"
    )


COMMANDS = {"ls": ls, "verify": verify, "compact": compact, "gc": gc, "export": export}


def size(n_bytes: float) -> str:
    """Bytes for a person."""
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} TB"


def when(stamp: str) -> str:
    """The stamp of a part for a person, in UTC."""
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]} {stamp[9:11]}:{stamp[11:13]}" if stamp else ""


def printable_path(name: str) -> str:
    """A path in the store on one line, whole."""
    return "/".join(printable(part) for part in name.split("/"))


def as_override(arguments: list[str]) -> list[str]:
    """The command as the user writes it, a word of its own, as the config key that it sets."""
    first = arguments[1:2]
    if first and "=" not in first[0] and not first[0].startswith("-"):
        return [arguments[0], f"command={first[0]}", *arguments[2:]]
    return arguments


if __name__ == "__main__":
    sys.argv = as_override(sys.argv)
    entry("store", main, lists=("forget",))
