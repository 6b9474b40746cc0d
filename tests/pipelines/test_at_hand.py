"""Clips of recorded answers are looked at where they are at hand, and what was not looked at is said."""

import shutil

import pyarrow as pa
import pytest

from operators.benchmarks.mugen import Mugen
from operators.mugen.presentation import MUGEN_ITEM
from pipelines.at_hand import probe_at_hand
from pipelines.mugen_phases import refuse_unheard
from pipelines.phases import Journal
from tests.mugen_toys import tones


def items(**uris):
    rows = [
        {"item_id": name, "audio_uris": some, "n_reference": 0, "gold_index": 0}
        for name, some in uris.items()
    ]
    return pa.Table.from_pylist(rows, schema=MUGEN_ITEM)


def errors(table):
    return {row["item_id"]: row["item_error"] for row in table.to_pylist()}


@pytest.mark.weights
def test_missing_and_equal_clips_are_refused_by_name(tmp_path):
    a, b, c = (str(tmp_path / name) for name in tones(tmp_path, [0.2, 0.4, 0.6], "c"))
    twin, lost = str(tmp_path / "twin.wav"), str(tmp_path / "lost.wav")
    shutil.copy(a, twin)
    journal = Journal()
    heard = probe_at_hand(items(good=[a, b, c], twice=[a, b, twin], missing=[lost, b]), journal)
    found = errors(refuse_unheard(heard.items))
    assert found["good"] is None and not heard.notes
    assert found["twice"] == f"same_clip_twice: candidates 1 ({a}) and 3 ({twin}) are the same sound"
    assert found["missing"] == f"missing_file: {lost} does not exist"
    assert journal.stages["audio"].encoded == {"clips": 5} and journal.stages["audio"].failed == 1


def test_audio_that_is_elsewhere_is_not_missing():
    table = items(here=["/nowhere/a.wav", "/nowhere/b.wav"], away=["s3://bucket/a.wav", "/nowhere/b.wav"])
    heard = probe_at_hand(table, Journal())
    assert set(errors(refuse_unheard(heard.items)).values()) == {None}
    remote, local = heard.notes
    assert remote.startswith(
        "1 items have clips at remote addresses, so missing, broken and equal clips were not"
    )
    assert local.startswith("none of the 2 local clips is here")


def test_a_row_that_is_refused_already_keeps_its_reason(tmp_path):
    (tmp_path / "m.jsonl").write_text(
        '{"id": "q", "question": "Q", "candidates": ["a.wav"], "answer_index": 0}\n'
    )
    heard = probe_at_hand(Mugen(path=str(tmp_path / "m.jsonl")).load(), Journal())
    assert errors(refuse_unheard(heard.items))["q"].startswith("too_few_candidates") and not heard.notes
