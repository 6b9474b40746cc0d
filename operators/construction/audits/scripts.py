"""Scripts: the words and emotions of an audit item before anything is spoken (counterfactual audits, section 4).

Both branches of a script are made from one list of turns, so their transcripts are the same by construction; `checked`
makes sure nevertheless, by the check that the audit itself applies (`operators.benchmarks.emotions`).

*Our reading* of goal-failure injection (section 4.2, appendix B.2.2). The conversation states goals, and the assistant
fails two of them, at turns t_a and t_b, in the words of both branches. What differs is which failure the user minds: in
branch a the emotion shifts from X to Y with the first user turn after t_a, in branch b after t_b. The final response of
each branch speaks to its own failure. X comes from `CALM`, Y from `UPSET`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from operators.benchmarks.emotions import ASSISTANT, USER, check_counterfactual
from operators.columns import RowError

CALM = ("neutral", "happy")
UPSET = ("sad", "angry", "frazzled", "hesitant")


@dataclass(frozen=True)
class Said:
    """One utterance and how it is spoken."""

    speaker: str
    text: str
    emotion: str


@dataclass(frozen=True)
class Goal:
    """A goal that the assistant fails at `turn` (from 0, a turn of the assistant), and the response that speaks to it.

    failure: the words of that turn; None keeps those of the source, which fail the goal already.
    """

    turn: int
    goal: str
    failure: str | None
    response: str


@dataclass(frozen=True)
class Script:
    """An item to be rendered: two branches of turns, and the final assistant turn for each."""

    id: str
    kind: str
    branches: tuple[tuple[Said, ...], tuple[Said, ...]]
    responses: tuple[Said, Said]
    source: str
    notes: dict[str, object]

    @property
    def said(self) -> list[Said]:
        """Every utterance, branch by branch, then the responses."""
        return [*self.branches[0], *self.branches[1], *self.responses]


def checked(script: Script) -> Script:
    """`script` itself. Raises RowError ("reason: detail") where it is no counterfactual of its kind."""
    branches = [
        [{"speaker": turn.speaker, "text": turn.text, "emotion": turn.emotion} for turn in branch]
        for branch in script.branches
    ]
    check_counterfactual(script.kind, branches, [{"text": reply.text} for reply in script.responses])
    return script


def annotated(
    turns: Sequence[tuple[str, str]], user: Sequence[str], assistant: str = "neutral"
) -> tuple[Said, ...]:
    """`turns` of (speaker, text) with the user's emotions in order; the assistant's is the same throughout."""
    emotions = iter(user)
    return tuple(
        Said(speaker, text, next(emotions) if speaker == USER else assistant) for speaker, text in turns
    )


def failable(turns: Sequence[tuple[str, str]], goals: Sequence[Goal]) -> list[tuple[Goal, Goal]]:
    """Pairs of goals that can be told apart: a turn of the user lies between the failures, and one after the second.

    The first user turn must come before the first failure, or there would be no X to shift from.
    """
    pairs = []
    for first in goals:
        for second in goals:
            before = any(speaker == USER for speaker, _ in turns[: first.turn])
            between = any(speaker == USER for speaker, _ in turns[first.turn + 1 : second.turn])
            after = any(speaker == USER for speaker, _ in turns[second.turn + 1 :])
            if first.turn < second.turn and before and between and after:
                pairs.append((first, second))
    return pairs


def inject(
    name: str,
    turns: Sequence[tuple[str, str]],
    goals: Sequence[Goal],
    emotions: tuple[str, str] | None,
    response_emotion: str,
    source: str,
    seed: int,
) -> Script:
    """A positional script from a task dialogue and goals to fail; which two, and X and Y, are drawn where open.

    emotions: (X, Y), or None. Turns after the user's last are left out. Raises RowError where no contrast can be made.
    """
    turns = upto_last_user(turns)
    for goal in goals:
        if not 0 <= goal.turn < len(turns) or turns[goal.turn][0] != ASSISTANT:
            raise RowError(f"bad_goal: turn {goal.turn + 1} is no assistant turn before the user's last turn")
    pairs = failable(turns, goals)
    if not pairs:
        raise RowError(
            "no_contrast: two goals are needed with a user turn before, between and after their failures"
        )
    rng = Random(f"{seed}|{name}")
    first, second = rng.choice(pairs)
    calm, upset = emotions or (rng.choice(CALM), rng.choice(UPSET))
    failed = {goal.turn: goal.failure for goal in (first, second) if goal.failure}
    words = [(speaker, failed.get(place, text)) for place, (speaker, text) in enumerate(turns)]
    branches = tuple(
        annotated(
            words,
            [
                upset if place > goal.turn else calm
                for place, (speaker, _) in enumerate(words)
                if speaker == USER
            ],
        )
        for goal in (first, second)
    )
    responses = tuple(Said(ASSISTANT, goal.response, response_emotion) for goal in (first, second))
    notes = {
        "failed_goals": [goal.goal for goal in (first, second)],
        "failed_turns": [first.turn + 1, second.turn + 1],
    }
    return checked(Script(name, "positional_emotion", branches, responses, source, notes))


def upto_last_user(turns: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """`turns` without what follows the user's last one. Raises RowError where the user says nothing."""
    last = max((place for place, (speaker, _) in enumerate(turns) if speaker == USER), default=None)
    if last is None:
        raise RowError("no_user_turn: the user says nothing in this dialogue")
    return list(turns[: last + 1])
