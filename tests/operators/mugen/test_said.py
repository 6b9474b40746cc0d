"""What a file of trials says, kept on disk: as a dictionary would, and without its memory."""

import json
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq

from operators.answers import Extraction
from operators.lalms.recorded import Recorded
from operators.mugen.presentation import MUGEN_ITEM, GenerationSet
from operators.mugen.recorded import read_trials
from operators.mugen.said import Key, Said
from operators.mugen.votes import TRIALS
from operators.store import Store
from pipelines.mugen_phases import read_and_keep


def key(model="m", item="q", n=None, trial=0):
    return Key(model, item, "mugen_direct", True, n, trial)


def entry(response):
    return {"response": response, "error": None, "order": [1, 0], "finish_reason": None, "usage": "{}"}


def test_every_key_has_its_entry_and_all_candidates_are_no_number_of_them():
    said = Said()
    said.add(key(), entry("all"), "line 1")
    said.add(key(n=2), entry("two é \U0001f41d"), "line 2")
    assert said.get(key()) == entry("all") and said.get(key(n=2)) == entry("two é \U0001f41d")
    assert said.get(key(n=3)) is None and said.get(key(trial=1)) is None


def test_the_same_again_counts_once_and_another_response_is_an_error_of_both():
    said = Said()
    for response, place in (("a", "line 1"), ("a", "line 2"), ("b", "line 3")):
        said.add(key(), entry(response), place)
    found = said.get(key())
    assert found["response"] is None and found["error"] == "duplicate_response: again on line 3"


def test_models_come_in_the_order_of_the_file_and_gaps_count_as_trials():
    said = Said()
    for model, item, trial in (("z", "q", 0), ("a", "p", 4), ("z", "p", 1)):
        said.add(key(model, item, trial=trial), entry("x"), "line")
    assert said.models() == ["z", "a"] and said.item_ids() == {"p", "q"}
    assert said.n_trials() == {("z", "mugen_direct", True): 2, ("a", "mugen_direct", True): 5}


class First:
    """A reader that reads the first option out of everything."""

    def read(self, asked):
        return [Extraction(0, "letter", None) for _ in asked]


def test_memory_holds_a_portion_of_the_responses_however_many_trials_there_are(tmp_path, monkeypatch):
    # 10 items of 30 trials of 20 kB: 6 MB of text. A portion of 16 is 0.3 MB; a few copies of it are alive at once.
    monkeypatch.setattr("pipelines.mugen_phases.PORTION", 16)
    item = {"benchmark": "b", "question": "?", "choices": [], "gold_index": 1, "audio_uris": ["a", "b", "c"],
            "n_reference": 0, "ranking": False}  # fmt: skip
    items = pa.Table.from_pylist([item | {"item_id": f"q{k}"} for k in range(10)], schema=MUGEN_ITEM)
    path = tmp_path / "r.jsonl"
    with path.open("w") as file:
        for trial in range(30):
            for k in range(10):
                row = {"id": f"q{k}", "trial": trial, "response": f"{k} {trial} " + "word " * 4000}
                file.write(json.dumps(row) + "\n")
    tracemalloc.start()
    said = read_trials(
        Recorded(path=str(path)), items, {GenerationSet("mugen_direct", True, False): 30}, [None], 0
    )
    trials = read_and_keep(
        said.rows, First(), items, Store(str(tmp_path / "store")), tmp_path / "trials.parquet"
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    written = pq.read_table(tmp_path / "trials.parquet")
    assert written.schema.equals(TRIALS) and written.drop_columns("response").equals(trials)
    assert written["response"][31].as_py().startswith("1 1 word"), (
        "in the order of items and trials, not of the file"
    )
    assert trials.num_rows == 300 and peak < 3 * 2**20
