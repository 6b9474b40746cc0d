"""Labelled corpora: which column is which label, what is left out and why."""

import pytest
from pydantic import ValidationError

from operators.audio import Probe
from operators.construction.clips import identify, without_duplicates
from operators.construction.corpora import Corpus
from operators.tables import TableError
from tests.operators.construction.synthetic import clip


def table(folder, text, **fields):
    (folder / "labels.csv").write_text(text, encoding="utf-8")
    return Corpus(**{"name": "c", "labels": str(folder / "labels.csv"), "licence": "CC0-1.0", **fields})


def test_labels_come_from_columns_constants_and_renaming(tmp_path):
    corpus = table(
        tmp_path,
        "file,actor,emo,sentence,instrument\na.wav,7,ANG,Go on | stop.,piano | violin\nb.wav,,SAD,,\n",
        columns={"emotion": "emo"},
        constant={"content": "speech"},
        rename={"emotion": {"ANG": "angry"}},
    )
    clips, left = corpus.read()
    assert not left
    first, second = clips
    assert first.uri == str(tmp_path.resolve() / "a.wav")
    assert first.values("emotion") == {"angry"}
    assert first.values("speaker") == {"7"}, "the column `actor` is known as the speaker"
    assert first.values("transcript") == {"Go on | stop."}, "a transcript is never cut"
    assert first.values("instrument") == {"piano", "violin"}
    assert first.values("content") == second.values("content") == {"speech"}
    assert second.values("emotion") == {"SAD"}
    assert second.labels.keys() == {"content", "emotion"}, "empty cells are no labels"
    assert (first.licence, first.source, first.place) == ("CC0-1.0", "c", "line 2")


def test_a_list_cell_of_jsonl_is_several_values(tmp_path):
    (tmp_path / "l.jsonl").write_text('{"file": "a.wav", "event": ["dog", "rain"], "digit": 7}\n')
    (clip_,), _ = Corpus(name="c", labels=str(tmp_path / "l.jsonl"), licence="x").read()
    assert clip_.values("event") == {"dog", "rain"}
    assert clip_.values("digit") == {"7"}


def test_an_unknown_label_column_is_named_with_those_there_are(tmp_path):
    corpus = table(tmp_path, "file,emo\na.wav,x\n", columns={"emotion": "emotoin"})
    with pytest.raises(TableError, match=r"no column for corpora\.c\.columns\.emotion=emotoin.*file, emo"):
        corpus.read()


def test_a_table_without_the_clips_column_says_what_to_do(tmp_path):
    with pytest.raises(TableError, match=r"(?s)no column for 'file'.*'clip_name'.*corpora\.c\.columns\."):
        table(tmp_path, "clip_name,emotion\na.wav,sad\n").read()


def test_a_licence_is_asked_for_and_may_stand_in_every_row(tmp_path):
    with pytest.raises(
        TableError, match=r"set corpora\.c\.licence, or corpora\.c\.columns\.licence=<column>"
    ):
        table(tmp_path, "file\na.wav\n", licence=None).read()
    clips, left = table(tmp_path, "file,license,source\na.wav,CC BY,Ann\nb.wav,,Bob\n", licence=None).read()
    assert [(clip_.licence, clip_.source) for clip_ in clips] == [("CC BY", "Ann")]
    assert [(out.name, out.reason.split(":")[0]) for out in left] == [("b.wav", "no_licence")]


def test_rows_that_name_nothing_or_leave_the_folder_are_left_out(tmp_path):
    clips, left = table(tmp_path, "file,digit\n,1\n../b.wav,2\nc.wav,3\n").read()
    assert [clip_.name for clip_ in clips] == ["c.wav"]
    assert [(out.place, out.reason.split(":")[0]) for out in left] == [
        ("line 2", "missing_file"),
        ("line 3", "audio_outside_folder"),
    ]


def test_a_name_that_would_break_paths_is_refused():
    with pytest.raises(ValidationError, match="name"):
        Corpus(name="a b/c", labels="x.csv")


def test_clips_that_do_not_decode_are_left_out_by_name():
    probes = {
        "/a.wav": Probe("h", 2.0, None),
        "/b.wav": Probe(None, None, "missing_file: /b.wav does not exist"),
    }
    usable, failed = identify([clip("a"), clip("b")], probes.__getitem__)
    assert [(c.name, c.hash, c.seconds) for c in usable] == [("a", "h", 2.0)]
    assert [(out.name, out.reason) for out in failed] == [("b", "missing_file: /b.wav does not exist")]


def same_sound(name, corpus_name="c", **labels):
    import dataclasses

    return dataclasses.replace(clip(name, corpus_name, **labels), hash="one sound")


def test_of_twins_that_agree_the_first_stays():
    twins = [same_sound("a", emotion="sad"), same_sound("b", emotion="sad"), same_sound("c", speaker="1")]
    kept, dropped = without_duplicates([*twins, clip("d", emotion="sad")])
    assert [c.name for c in kept] == ["a", "d"]
    assert [out.reason.split(":")[0] for out in dropped] == ["duplicate", "duplicate"]
    assert "c a (line 1)" in dropped[0].reason


def test_twins_that_disagree_all_go_and_are_named():
    kept, dropped = without_duplicates([same_sound("a", emotion="sad"), same_sound("b", emotion="angry")])
    assert not kept
    assert [out.name for out in dropped] == ["a", "b"]
    assert all("contradictory_labels: c a (line 1) and c b (line 1)" in out.reason for out in dropped)


def test_twins_of_two_corpora_are_one_clip_even_where_vocabularies_differ():
    kept, dropped = without_duplicates(
        [same_sound("a", "x", event="dog"), same_sound("b", "y", event="dog bark")]
    )
    assert [c.name for c in kept] == ["a"]
    assert len(dropped) == 1


@pytest.mark.parametrize(
    ("label", "one", "other"),
    [
        ("event", "dog bark", "Dog bark"),
        ("event", "dog bark", "dog_bark"),
        ("event", "dog-bark", "dogbark."),
        ("digit", "0", "zero"),
        ("digit", "0", "00"),
        ("digit", "7", "7.0"),
        ("speaker", "s01", "S01"),
    ],
)
def test_one_value_in_two_spellings_is_refused_with_both(tmp_path, label, one, other):
    text = f"file,{label}\na.wav,{one}\nb.wav,other\nc.wav,{other}\n"
    with pytest.raises(TableError) as refused:
        table(tmp_path, text).read()
    assert f"{label} {one!r} and {other!r} (line 2 and line 4)" in str(refused.value)
    assert f"corpora.c.rename.{label}={{{other!r}: {one!r}}}" in str(refused.value)
    clips, _ = table(tmp_path, text, rename={label: {other: one}}).read()
    assert [clip_.values(label) for clip_ in clips] == [{one}, {"other"}, {one}]


def test_values_that_only_look_alike_stay_apart(tmp_path):
    genre = ["C", "C#", "1.5", "15", "150", "-1", "1", "1-2", "12", "+", "-", "5s"]
    clips, _ = table(tmp_path, "file,genre\n" + "".join(f"{i}.wav,{g}\n" for i, g in enumerate(genre))).read()
    assert [clip_.values("genre") for clip_ in clips] == [{value} for value in genre]


def test_a_sentence_has_one_spelling_whatever_its_case_and_punctuation(tmp_path):
    said = [
        "It's almost full.",
        "ITS ALMOST FULL",
        "its almost  full!",
        "It is almost full",
        "?!",
        "नमस्ते",
        "नमस्त",
    ]
    rows = "".join(f'{i}.wav,"{text}"\n' for i, text in enumerate(said))
    clips, _ = table(tmp_path, f"file,transcript\n{rows}").read()
    assert [next(iter(clip_.values("transcript"))) for clip_ in clips] == [
        said[0],
        said[0],
        said[0],
        *said[3:],
    ]
