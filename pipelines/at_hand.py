"""Clips that lie on this machine, decoded without Ray: what recorded answers are about, as far as it can be heard here.

Recorded answers need no audio, and their clips may be elsewhere. Where they are at hand, an item that no model could have
been asked fairly (a clip is missing, two candidates are one sound) is found as in a run that generates.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from operators.audio import MAX_SECONDS, Probe, probe_rows
from operators.batching import Memo
from operators.decoder import DecoderProcess
from operators.frames import to_column, with_columns
from operators.locators import is_uri
from operators.schema import CLIPS
from pipelines.lookup import Tally
from pipelines.phases import Journal

MOST_DECODERS = 16
CLIPS_PER_DECODER = 50  # starting a process takes as long as decoding so many
UNCHECKED = "so missing, broken and equal clips were not looked for there"


class Heard(NamedTuple):
    """`items` with the CLIPS columns, null where nothing was decoded; `notes`: what was not checked."""

    items: pa.Table
    notes: list[str]


def probe_at_hand(items: pa.Table, journal: Journal) -> Heard:
    """Decode the clips of usable `items` once each where they are local files.

    Items with a clip at an address are left alone, and so are all where none of the local files is there: then the audio is
    on another machine, not missing.
    """
    usable = [(row, item) for row, item in enumerate(items.to_pylist()) if item["item_error"] is None]
    local = [(row, item["audio_uris"]) for row, item in usable if not any(map(is_uri, item["audio_uris"]))]
    distinct = list(dict.fromkeys(uri for _, uris in local for uri in uris))
    notes = []
    if away := len(usable) - len(local):
        notes.append(f"{away} items have clips at remote addresses, {UNCHECKED}")
    if distinct and not any(map(os.path.exists, distinct)):
        notes.append(f"none of the {len(distinct)} local clips is here, {UNCHECKED}")
        local, distinct = [], []
    with journal.phase("audio"):
        found = decoded(distinct)
    columns = _columns(items.num_rows, local, found)
    failed = sum(error is not None for error in columns["audio_error"])
    journal.stages["audio"] = Tally(
        items.num_rows, items.num_rows - len(local), 0, len(local), failed, encoded={"clips": len(distinct)}
    )
    written = {name: to_column(column, CLIPS.field(name).type) for name, column in columns.items()}
    return Heard(with_columns(items, written), notes)


def decoded(uris: Sequence[str]) -> dict[str, Probe]:
    """What decoding finds out about each of the distinct `uris`, in processes of their own, under a progress bar."""
    count = min(MOST_DECODERS, os.cpu_count() or 1, -(-len(uris) // CLIPS_PER_DECODER))
    if not uris:
        return {}
    with tqdm(total=len(uris), desc="audio     ", unit="clip") as bar, ThreadPoolExecutor(count) as pool:

        def share(number: int) -> dict[str, Probe]:
            decoder, found = DecoderProcess(MAX_SECONDS, 120.0), {}
            try:
                for uri in uris[number::count]:
                    found[uri] = decoder.probe(uri)
                    bar.update()
            finally:
                decoder.close()
            return found

        parts = list(pool.map(share, range(count)))
    return {uri: probe for part in parts for uri, probe in part.items()}


def _columns(
    n_rows: int, local: Sequence[tuple[int, Sequence[str]]], found: dict[str, Probe]
) -> dict[str, np.ndarray]:
    lists = np.empty(len(local), dtype=object)
    for place, (_, uris) in enumerate(local):
        lists[place] = uris
    probed = probe_rows(lists, Memo("clips"), found.__getitem__)
    columns = {name: np.full(n_rows, None, dtype=object) for name in probed}
    for place, (row, _) in enumerate(local):
        for name, column in probed.items():
            columns[name][row] = column[place]
    return columns
