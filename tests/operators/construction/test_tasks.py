"""Tasks draw items whose gold is right by construction; what cannot be built says what it lacks."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from operators.construction.assembly import Plan, arrange, draw_all
from operators.construction.balance import gold_positions, position_table
from operators.construction.draws import draw_items, generator
from operators.construction.matching import LikeReference, Match
from operators.construction.pools import Kinds, sort_out
from operators.construction.proof import ProofError, check, right_options
from operators.construction.ranking import Rank
from operators.construction.tasks import TaskError
from tests.operators.construction.synthetic import clip

SOUNDS = {"dimension": "Acoustic Scene & Event Analysis", "question": "Select {event}."}
FEELING = {"dimension": "Affective & Paralinguistic State", "question": "Select the {emotion} one."}
TIME = {"dimension": "Temporal Awareness", "question": "Select it."}


def drawn(task, clips, count=50, n=5, uses=3, seed=0):
    return draw_items(task, clips, count, n, uses, generator(seed, "t"))


def spoken(n_speakers=6, emotions=("angry", "neutral", "sad"), words=("hello", "goodbye")):
    """Every speaker says all words in all emotions."""
    return [
        clip(f"{s}-{e}-{w}", speaker=str(s), emotion=e, transcript=w)
        for s in range(n_speakers)
        for e in emotions
        for w in words
    ]


def test_match_has_one_right_option_and_contrasts_spread_over_the_values():
    clips = [clip(f"{e}{i}", event=e) for e in ("dog", "rain", "sea", "cat", "bell") for i in range(4)]
    items = drawn(Match(labels=("event",), **SOUNDS), clips, count=20)
    assert len(items) == 20
    for item in items:
        events = [next(iter(c.values("event"))) for c in item.candidates]
        assert sorted(events) == ["bell", "cat", "dog", "rain", "sea"], "five options, five kinds"
        assert item.question == f"Select {events[0]}."
    assert Counter(item.question for item in items) == {
        f"Select {e}.": 4 for e in ("dog", "rain", "sea", "cat", "bell")
    }
    assert Counter(item.gold.name for item in items).most_common(1)[0][1] == 1, (
        "every gold once before any twice"
    )


def test_the_angriest_among_neutral_has_neutral_distractors_only():
    task = Match(
        labels=("emotion",), values={"emotion": ("angry",)}, contrast={"emotion": ("neutral",)}, **FEELING
    )
    for item in drawn(task, spoken()):
        assert item.gold.values("emotion") == {"angry"}
        assert all(c.values("emotion") == {"neutral"} for c in item.distractors)


def test_same_and_differ_hold_in_every_item():
    task = Match(labels=("emotion",), same=("transcript",), differ=("speaker",), **FEELING)
    items = drawn(task, spoken())
    assert items
    for item in items:
        assert len({c.values("transcript") for c in item.candidates}) == 1
        assert len({c.values("speaker") for c in item.candidates}) == 5


def test_a_clip_with_the_asked_value_among_others_is_right_and_never_a_distractor():
    duo = clip("duo", instrument="piano|violin")
    clips = [duo, *(clip(f"v{i}", instrument="violin") for i in range(6))]
    task = Match(labels=("instrument",), dimension="Music Analysis", question="Select {instrument}.")
    items = drawn(task, clips)
    assert {item.question for item in items} == {"Select piano."}, "no four clips without a violin"
    assert all(item.gold == duo for item in items)


def test_several_labels_have_near_misses_on_each_side():
    task = Match(
        labels=("emotion", "transcript"),
        dimension="Compositional Acoustic Reasoning",
        question="Select {emotion}: {transcript}.",
    )
    for item in drawn(task, spoken()):
        emotion, words = item.gold.values("emotion"), item.gold.values("transcript")
        others = [(c.values("emotion") == emotion, c.values("transcript") == words) for c in item.distractors]
        assert (True, False) in others
        assert (False, True) in others
        assert (True, True) not in others


def test_same_emotion_other_words():
    task = LikeReference(
        labels=("emotion",), other=("transcript",), dimension=FEELING["dimension"], question="Select it."
    )
    items = drawn(task, spoken())
    assert len(items) == 50
    for item in items:
        assert item.gold.values("emotion") == item.reference.values("emotion")
        assert all(c.values("emotion") != item.reference.values("emotion") for c in item.distractors)
        assert all(c.values("transcript") != item.reference.values("transcript") for c in item.candidates)
        assert item.reference not in item.candidates


def test_items_never_mix_corpora():
    clips = [clip(f"{c}{e}{i}", c, event=e) for c in "xy" for e in ("dog", "rain") for i in range(5)]
    items = drawn(Match(labels=("event",), **SOUNDS), clips)
    assert {item.gold.corpus for item in items} == {"x", "y"}
    assert all(len({c.corpus for c in item.candidates}) == 1 for item in items)


def timed(values, **labels):
    return [clip(f"c{i}", measured={"duration": v}, **labels) for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("order", "rank", "gold"), [("highest", 1, 16.0), ("highest", 3, 4.0), ("lowest", 2, 2.0)]
)
def test_rank_finds_the_only_possible_gold(order, rank, gold):
    task = Rank(property="duration", order=order, rank=rank, margin=2.0, **TIME)
    (item,) = drawn(task, timed([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert item.gold.measured["duration"] == gold
    assert task.ranking == (rank > 1)


def test_values_within_the_margin_are_never_neighbours_of_the_gold():
    # 1, 1.5, 2 ... by steps of 1.5x; a margin of 1.6 forbids the next one, not the one after it
    clips = timed([1.5**k for k in range(12)])
    items = drawn(Rank(property="duration", margin=1.6, **TIME), clips)
    assert items
    for item in items:
        longest = item.gold.measured["duration"]
        assert all(longest >= 1.6 * c.measured["duration"] for c in item.distractors)


def test_the_longest_dog_bark_has_shorter_barks_and_longer_other_sounds():
    clips = timed([1, 2, 4, 8], event="dog") + [
        clip(f"r{i}", measured={"duration": 20.0 + i}, event="rain") for i in range(3)
    ]
    task = Rank(
        property="duration",
        among="event",
        dimension="Compositional Acoustic Reasoning",
        question="Select the longest {event}.",
    )
    items = drawn(task, clips)
    assert items
    for item in items:
        assert item.question == "Select the longest dog."
        barks = [c for c in item.candidates if c.values("event") == {"dog"}]
        assert len(barks) == 3
        assert item.gold == max(barks, key=lambda c: c.measured["duration"])
        assert all(c.measured["duration"] > 8 for c in item.candidates if c not in barks)


@pytest.mark.parametrize(
    ("task", "clips", "said"),
    [
        (
            Match(labels=("event",), **SOUNDS),
            [clip(f"d{i}", event="dog") for i in range(9)],
            "one_class: needs at least two values of 'event'; all 9 usable clips have 'dog'",
        ),
        (
            Match(labels=("event",), values={"event": ("dog",)}, **SOUNDS),
            [clip("d", event="dog"), clip("r", event="rain"), clip("s", event="sea")],
            "needs 1 clip with the asked event and 4 with another; of 3 usable clips there are at best 1 and 2",
        ),
        (
            LikeReference(labels=("speaker",), dimension="Speaker & Demographics", question="?"),
            [clip(str(i), speaker=str(i)) for i in range(9)],
            "needs 2 clips with one speaker and 4 with another; of 9 usable clips there are at best 1 and 8",
        ),
        (
            Match(labels=("emotion",), same=("transcript",), differ=("speaker",), **FEELING),
            spoken(2),
            "all of one transcript; of 12 usable clips there are at best 2 and 4; candidates must differ in speaker",
        ),
        (
            Rank(property="duration", **TIME),
            timed([1.0, 1.1, 1.2, 1.3]),
            "needs a clip with 0 clearly ahead and 4 clearly behind in duration (highest first, margin 1.25); "
            "the best of 4 measured clips has 0 and 1",
        ),
        (
            Match(labels=("event", "a", "b", "c", "d"), **SOUNDS),
            [clip(f"{i}", event="xy"[i % 2], **dict.fromkeys("abcd", "xy"[i // 2 % 2])) for i in range(9)],
            "wrong in each of event and a and b and c and d alone, so an item needs at least 6 candidates; n_candidates is 5",
        ),
        (
            Rank(property="duration", differ=("event",), **TIME),
            timed([1, 2, 4, 8, 16, 32], event="dog"),
            "has 1 and 4; candidates must differ in event: an item needs 5 values of each",
        ),
    ],
)
def test_a_task_that_cannot_be_built_says_what_it_needs_and_what_there_is(task, clips, said):
    plan = Plan(0, 5, 10, 3, "copy")
    draws, short = draw_all(plan, {"t": task}, clips)
    assert draws == {"t": []}
    assert said in short["t"]


def test_missing_labels_values_and_measurements_are_told_apart():
    plan, clips = Plan(0, 5, 10, 3, "copy"), [clip(str(i), content="speech") for i in range(9)]
    tasks = {
        "label": Match(labels=("event",), **SOUNDS),
        "value": Rank(property="duration", where={"content": ("music",)}, **TIME),
        "measured": Rank(property="pitch", **TIME),
    }
    _, short = draw_all(plan, tasks, clips)
    assert short["label"] == "no_label: no clip has the label 'event'"
    assert short["value"] == "no_value: no clip has content=music"
    assert short["measured"] == "not_measurable: pitch of none of 9 clips (not measured)"


def test_fewer_items_than_asked_for_is_said():
    draws, short = draw_all(
        Plan(0, 5, 10, 3, "copy"), {"t": Rank(property="duration", **TIME)}, timed([1, 1, 1, 1, 2])
    )
    assert len(draws["t"]) == 1
    assert short["t"] == (
        "no_more_items: the clips give 1 of 10 different ones; they need at least 4 clips that can be right (gold_uses=3), "
        "there are 1"
    )
    many = [clip(str(i), event=str(i)) for i in range(5)]
    draws, short = draw_all(Plan(0, 5, 12, 3, "copy"), {"t": Match(labels=("event",), **SOUNDS)}, many)
    assert len(draws["t"]) == 5, "one per clip asked for: every set is all five clips"
    assert short["t"].endswith(
        "5 clips can be right, but there are too few distractors for further sets of 5"
    )


def test_wrong_tasks_are_refused_with_the_field():
    with pytest.raises(ValidationError, match="the margin of duration is a ratio"):
        Rank(property="duration", margin=0.5, **TIME)
    with pytest.raises(ValidationError, match="only the first place"):
        Rank(property="duration", among="event", rank=2, **TIME)
    with pytest.raises(ValidationError, match="Temporal Awareness"):
        Rank(property="duration", dimension="Time", question="?")
    with pytest.raises(TaskError, match="place 7 of 5"):
        drawn(Rank(property="duration", rank=7, **TIME), timed([1, 2]))
    with pytest.raises(TaskError, match=r"\{evnt\} stands for nothing here; allowed: \{event\}"):
        clips = [clip(str(i), event=str(i)) for i in range(5)]
        drawn(Match(labels=("event",), dimension=SOUNDS["dimension"], question="Select {evnt}."), clips)


def test_a_task_of_its_own_seed_is_the_same_whatever_else_is_built():
    clips = spoken()
    feeling = Match(labels=("emotion",), **FEELING)
    other = LikeReference(labels=("speaker",), dimension="Speaker & Demographics", question="?")
    plan = Plan(3, 5, 10, 3, "copy")
    alone, _ = draw_all(plan, {"a": feeling}, clips)
    both, _ = draw_all(plan, {"b": other, "a": feeling}, list(reversed(clips)))
    assert alone["a"] == both["a"], "neither other tasks nor the order of the table matter"
    again, _ = draw_all(Plan(4, 5, 10, 3, "copy"), {"a": feeling}, clips)
    assert again["a"] != alone["a"]


@given(st.integers(1, 60), st.integers(2, 7), st.integers(0, 5))
def test_every_position_is_right_equally_often(n_items, n_candidates, seed):
    counts = Counter(gold_positions(n_items, n_candidates, Counter(), Random(seed)))
    spread = [counts[i] for i in range(n_candidates)]
    assert sum(spread) == n_items
    assert max(spread) - min(spread) <= 1


def test_the_rest_of_one_task_is_evened_out_by_the_next():
    so_far = Counter({0: 1, 1: 1, 2: 0, 3: 0, 4: 0})
    assert sorted(gold_positions(3, 5, so_far, Random(0))) == [2, 3, 4]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000))
def test_every_item_of_every_kind_is_proved_by_its_own_line(seed):
    clips = [
        clip(
            f"{s}{e}{w}",
            speaker=str(s),
            emotion=e,
            transcript=w,
            measured={"duration": 1.3 ** ((7 * s + i) % 11)},
        )
        for s in range(4)
        for e in ("angry", "neutral", "sad")
        for i, w in enumerate(("hello", "goodbye"))
    ]
    tasks = {
        "match": Match(labels=("emotion",), **FEELING),
        "both": Match(
            labels=("emotion", "speaker"),
            dimension="Compositional Acoustic Reasoning",
            question="{emotion} {speaker}",
        ),
        "like": LikeReference(labels=("speaker",), other=("transcript",), **TIME),
        "rank": Rank(property="duration", rank=2, **TIME),
        "among": Rank(property="duration", among="emotion", **TIME),
    }
    plan = Plan(seed, 5, 7, 3, "copy")
    draws, _ = draw_all(plan, tasks, clips)
    rows = arrange(plan, tasks, draws, lambda c: c.name)
    assert {row["task"] for row in rows} == set(tasks)
    for row in rows:
        assert right_options(row["evidence"]) == [row["answer_index"]]
        assert len({*row["candidates"], *row["reference"]}) == len(row["candidates"]) + len(row["reference"])
        assert row["ranking"] == (row["task"] == "rank")
    assert len({row["id"] for row in rows}) == len(rows)
    total = [sum(column) for column in zip(*position_table(rows, 5).values(), strict=True)]
    assert max(total) - min(total) <= 1


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), min_size=1, max_size=12),
    st.integers(2, 4),
)
def test_the_cheap_check_never_rules_out_what_could_be_drawn(pairs, n_candidates):
    clips = [clip(str(i), emotion=e, transcript=t) for i, (e, t) in enumerate(pairs)]
    wanted = (clips[0].values("emotion"), clips[0].values("transcript"))
    kinds = Kinds([(c.values("emotion"), c.values("transcript"))] for c in clips)
    tests = [lambda c: c.values("emotion") == wanted[0], lambda c: c.values("transcript") == wanted[1]]
    pools = sort_out(clips, tests, lambda c, index: True, n_candidates)
    assert pools.quotas is None or kinds.plausible(wanted, 1)


def line(kind, candidates, answer_index=0, **rule):
    names = [f"{i}.wav" for i in range(len(candidates))]
    evidence = {"kind": kind, "candidates": candidates, **rule}
    return {
        "id": "x",
        "candidates": names,
        "reference": [],
        "answer_index": answer_index,
        "evidence": evidence,
    }


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (line("labels", [{"e": ["a"]}, {"e": ["a"]}], asked={"e": "a"}), r"option \[0, 1\] is right, not 0"),
        (line("labels", [{"e": ["a"]}, {"e": ["b"]}], 1, asked={"e": "a"}), r"option \[0\] is right, not 1"),
        (
            line("labels", [{"e": ["a b"]}, {"e": ["A_B"]}], asked={"e": "a b"}),
            r"option \[0, 1\] is right, not 0",
        ),
        (line("labels", [{"e": ["a"]}, {"e": []}], asked={"e": "a"}), "no value of 'e'"),
        (
            line(
                "like_reference",
                [{"s": ["1"]}, {"s": ["1", "2"]}],
                labels=["s"],
                other=[],
                reference={"s": ["1"]},
            ),
            "neither like the reference nor unlike it",
        ),
        (
            line(
                "like_reference",
                [{"s": ["1"], "w": ["x"]}, {"s": ["2"], "w": ["y"]}],
                labels=["s"],
                other=["w"],
                reference={"s": ["1"], "w": ["x"]},
            ),
            "candidate 0 has the w of the reference",
        ),
        (
            line(
                "measured",
                [{"p": 2.0}, {"p": 1.9}],
                property="p",
                order="highest",
                rank=1,
                margin={"ratio": 1.1},
            ),
            "2 and 1.9 are not clear of each other",
        ),
    ],
)
def test_the_proof_refuses_what_does_not_single_out_the_gold(item, said):
    with pytest.raises(ProofError, match=said):
        check(item)


def test_the_proof_refuses_one_clip_twice():
    item = line("labels", [{"e": ["a"]}, {"e": ["b"]}], asked={"e": "a"})
    with pytest.raises(ProofError, match="one clip stands twice"):
        check(item | {"reference": ["1.wav"]})
