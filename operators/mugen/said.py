"""What a file of recorded trials says under each key, on disk: memory holds none of it, however many trials there are."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from operators.entries import private_database

Entry = dict[str, Any]

_CREATE = """CREATE TABLE said (
    place INTEGER PRIMARY KEY, model, item_id, prompt, permute, n_candidates, trial, entry,
    UNIQUE (item_id, model, prompt, permute, n_candidates, trial))"""
_INSERT = """INSERT OR IGNORE INTO said (model, item_id, prompt, permute, n_candidates, trial, entry)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_SELECT = """SELECT entry FROM said
    WHERE model = ? AND item_id = ? AND prompt = ? AND permute = ? AND n_candidates = ? AND trial = ?"""
_UPDATE = """UPDATE said SET entry = ?
    WHERE model = ? AND item_id = ? AND prompt = ? AND permute = ? AND n_candidates = ? AND trial = ?"""


class Key(NamedTuple):
    """Which trial a row of the file is about. n_candidates: None for all."""

    model: str
    item_id: str
    prompt: str
    permute: bool
    n_candidates: int | None
    trial: int


class Said:
    """Entries by Key, in a temporary database of their own that goes with this object.

    An entry holds `response`, `error`, `order`, `finish_reason`, `usage`.
    """

    def __init__(self) -> None:
        self._rows = private_database()
        self._rows.execute(_CREATE)

    def add(self, key: Key, entry: Entry, place: str) -> None:
        """Keep an entry. Another response under the same key, at `place` of the file, leaves an error: neither counts."""
        if self._rows.execute(_INSERT, (*_stored(key), json.dumps(entry))).rowcount:
            return
        earlier = self.get(key)
        if earlier["response"] != entry["response"]:
            twice = entry | {"response": None, "error": f"duplicate_response: again on {place}"}
            self._rows.execute(_UPDATE, (json.dumps(twice), *_stored(key)))

    def get(self, key: Key) -> Entry | None:
        """The entry under `key`; None where the file says nothing."""
        found = self._rows.execute(_SELECT, _stored(key)).fetchone()
        return found and json.loads(found[0])

    def models(self) -> list[str]:
        """The models, in the order in which the file names them."""
        named = self._rows.execute("SELECT model FROM said GROUP BY model ORDER BY min(place)")
        return [model for (model,) in named]

    def item_ids(self) -> set[str]:
        """The ids of the items that have an entry."""
        return {name for (name,) in self._rows.execute("SELECT DISTINCT item_id FROM said")}

    def n_trials(self) -> dict[tuple[str, str, bool], int]:
        """Per model, prompt and kind of order one more than the highest trial number: gaps before it are missing trials."""
        highest = self._rows.execute(
            "SELECT model, prompt, permute, max(trial) + 1 FROM said GROUP BY model, prompt, permute"
        )
        return {(model, prompt, bool(permute)): n for model, prompt, permute, n in highest}

    def n_candidates(self) -> set[int | None]:
        """The numbers of candidates that trials are about; None for all."""
        found = self._rows.execute("SELECT DISTINCT n_candidates FROM said")
        return {None if n < 0 else n for (n,) in found}


def _stored(key: Key) -> Key:
    """With a number for every number: SQLite takes no two nulls for equal."""
    return key._replace(n_candidates=-1 if key.n_candidates is None else key.n_candidates)
