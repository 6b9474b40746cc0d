"""Which choice a response gives as its answer: the paper's rule and a careful one.

ARIA-Rubrics, Appendix E, is `rule="paper"`: the last [ANSWER] tag, then exact match, first substring,
letter. `rule="robust"` reads statements and refuses rather than guesses; every refusal has a reason.
Neither ever picks at random.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Literal

from operators import answer_statements as statements
from operators.answer_clauses import DISAGREE, Verdict, affirmed, denies, only_filler, sentences, turned
from operators.answer_marks import MARK, PART, Choices, mark, prepare
from operators.answer_paper import Extraction, paper_rule, refuse
from operators.answer_texts import key_of, normalise
from operators.cot import parse_slots


def extract_answer(
    response: str | None, choices: Sequence[str], rule: Literal["robust", "paper"] = "robust"
) -> Extraction:
    """The index of the choice that `response` gives as its answer, under one of two rules.

    Never raises for any text. `stage` names what matched: for `paper` exact, substring,
    letter_in_sentence or letter; for `robust` exact, letter, declared, leading, concluded, last_line or mention,
    with `tag_` before it where it was read in an answer slot. `reason` is one of no_response,
    empty_response, no_choices, no_answer_tag, no_match (paper); none_of_the_choices, refusal,
    several_choices, duplicated_choice, empty_choice, letter_out_of_range, letter_and_text_disagree,
    statements_disagree, no_choice_named (robust). Raises ValueError for an unknown rule or more choices
    than can be told apart.
    """
    if rule not in ("robust", "paper"):
        raise ValueError(f"rule must be 'robust' or 'paper', not {rule!r}")
    if response is None:
        return refuse("no_response")
    if not response.strip():
        return refuse("empty_response")
    texts = tuple("" if choice is None else str(choice) for choice in choices)
    if not any(map(str.strip, texts)):
        return refuse("no_choices")
    return paper_rule(response, texts) if rule == "paper" else _robust(response, prepare(texts))


# Conclusions stand at the end; a response that runs on for longer than this is a loop.
_READ_LAST = 100_000
# The shortcut for texts that are one choice and nothing else; longer ones take the long way.
_SHORT = 400
_THOUGHT_END = re.compile(r"</(?:think|thinking|thought)\s?>", re.IGNORECASE)


def _robust(response: str, choices: Choices) -> Extraction:
    """The answer slot where there is one, else the statements of the whole response.

    What stands after a closed thought counts, if anything does. A non-empty answer slot is final: where
    it names no choice the body is not searched, and where both name one and differ the slot wins. An
    empty slot (a response that was cut off) leaves the body's statements.
    """
    after = _THOUGHT_END.split(response)[-1]
    response = after if any(map(str.isalnum, after)) else response
    if (index := _equal(response, choices)) is not None:
        return Extraction(index, "exact", None)
    slot = parse_slots(response).answer
    tag = "tag_" if slot else ""
    zone = (slot or response)[-_READ_LAST:]
    if slot and (index := _equal(slot, choices)) is not None:
        return Extraction(index, "tag_exact", None)
    return _read(mark(normalise(zone), choices), choices, tag)


# In comparing words signs are left out, and so is the article "a"; what denies, or stands like a letter, must not be.
_CROSS = re.compile("[❌✗✘🚫]")
_LABELLED = re.compile(r"[(\[]?([A-Za-z])(?:[)\]][.:]?|[.:])\s{1,3}(\S.{0,400})", re.DOTALL)
_LETTER_A = re.compile(r"\b[aA]\s?[)\].:}-]|[(\[{]\s?[aA]\b")


def _equal(text: str, choices: Choices) -> int | None:
    """The one choice that a short text equals, to the letter or else word by word."""
    if (index := _verbatim(text.strip(), choices.given)) is not None:
        return index
    if len(text) > _SHORT:
        return None
    plain = normalise(text).strip()
    if plain.rstrip("\"') ]").endswith("?") and plain.casefold() not in choices.texts:
        return None  # it asks
    if _CROSS.search(plain) or (_LETTER_A.search(plain) and plain.casefold() not in choices.texts):
        return None
    group = choices.group_of.get(key_of(plain))
    return choices.groups[group][0] if group is not None and len(choices.groups[group]) == 1 else None


def _verbatim(text: str, given: Sequence[str]) -> int | None:
    """The one choice that a text is, as it was given, alone or under its label: signs and case may tell choices apart."""
    same = [index for index, choice in enumerate(given) if choice and choice == text]
    labelled = _LABELLED.fullmatch(text)
    if labelled and not same:
        index = string.ascii_uppercase.index(labelled[1].upper())
        same = [index] if given[index : index + 1] == (labelled[2],) else []
    return same[0] if len(same) == 1 else None


def _read(marked: str, choices: Choices, tag: str) -> Extraction:
    """One zone of text: as a bare answer, else by its last declaration, its opening, its conclusion, its
    mentions.
    """
    said = [statements.without_denied_cues(sentence) for sentence in sentences(marked)]
    if not said:
        return refuse("no_choice_named")
    bare = _bare(marked)
    # A list of the choices with a statement below ("A. dog\nB. cat\nThe answer is B.") is read as statements.
    if bare and not (
        bare.resolve(choices)[0] is None and len(said) > 1 and any(map(statements.has_cue, said))
    ):
        return _settle(bare, choices, tag + ("letter" if bare.letters else "exact"), marked)
    first = _opening(said, bool(tag))
    declared = _last_declared(said, choices, tag)
    if declared and first and declared.index is not None and tag:
        opening = first.resolve(choices)[0]
        if _bare(said[0]) and opening not in (None, declared.index):
            return refuse("statements_disagree")
    if declared:
        return declared
    if first:
        found = _settle(first, choices, tag + "leading", _with_afterthought(said, 0))
        later = {statements.retracts(sentence).resolve(choices)[0] for sentence in said[1:]}
        return found if found.index is None or later <= {None, found.index} else refuse("statements_disagree")
    return (
        _last_concluded(said, choices, tag)
        or _last_line(marked, choices, tag)
        or _mention(said, choices, tag)
    )


def _settle(verdict: Verdict, choices: Choices, stage: str, sentence: str) -> Extraction:
    """The choice that a sentence's verdict names, unless the sentence itself turns to another one.

    "It could be A, but it is B" is B; "A, or perhaps B" and "A, but it may be B" choose neither.
    """
    index, reason = verdict.resolve(choices)
    if index is None:
        return refuse(reason or "no_choice_named")
    if statements.unlisted_alternative(sentence):
        return refuse("several_choices")
    if any(said.resolve(choices)[1] == DISAGREE for said in statements.apposed(sentence)):
        return refuse(DISAGREE)
    others = [turn for turn in turned(sentence, verdict) if turn.verdict.resolve(choices)[0] != index]
    if not others:
        return Extraction(index, stage, None)
    revised = {turn.verdict.resolve(choices)[0] for turn in others}
    if len(revised) == 1 and None not in revised and all(turn.replaces for turn in others):
        return Extraction(revised.pop(), stage, None)
    return refuse("several_choices")


_AFTERTHOUGHT = re.compile(
    r"\W*(?:(?:but|though)\s)?(?:or|perhaps|maybe|possibly|alternatively)\b", re.IGNORECASE
)


def _with_afterthought(said: list[str], place: int) -> str:
    """A sentence, and the next one where that goes on with an alternative: "A. Or perhaps B."."""
    following = said[place + 1] if place + 1 < len(said) else ""
    return said[place] + (" " + following if _AFTERTHOUGHT.match(following) else "")


def _bare(text: str) -> Verdict | None:
    """A text that consists of marks, punctuation and filler only."""
    marks = re.findall(MARK, text)
    return affirmed(text) if marks and len(text) < 200 and "?" not in text and only_filler(text) else None


_OPENS = re.compile(rf"[\W_]{{0,4}}{MARK}\s?{MARK}?(?:\s?[.,:;)!-]|\s*\Z)")


def _opening(said: list[str], tagged: bool) -> Verdict | None:
    """What the first sentence names: anything in an answer slot, else only a mark that opens it ("B. Because
    ...").
    """
    if tagged:
        open_end = said[0].endswith("?") or statements.supposes(said[0]) or statements.weighs(said[0])
        return None if open_end or statements.refuses(said[0]) else affirmed(said[0])
    starts = [sentence for sentence in said if _OPENS.match(sentence)]
    if not _OPENS.match(said[0]) or len({re.search(MARK, s).group() for s in starts}) > 1:  # type: ignore[union-attr]
        return None
    return affirmed(said[0])


def _last_declared(said: list[str], choices: Choices, tag: str) -> Extraction | None:
    """The last sentence that declares an answer, or declares that there is none."""
    for place in reversed(range(len(said))):
        sentence = said[place]
        doubted = sentence.endswith("?") or any(map(statements.doubts, said[place + 1 : place + 2]))
        verdict = Verdict() if doubted else statements.declared(sentence)
        if not verdict and statements.has_cue(sentence) and denies(sentence) and place + 1 < len(said):
            # "The answer is not A. It is B."
            verdict = _instead(said[place + 1])
        if not verdict:
            reason = statements.refuses(sentence)
            if reason == "none_of_the_choices" or (reason and statements.has_cue(sentence)):
                return refuse(reason)
            continue
        if any(map(statements.unlisted, said[max(0, place - 1) : place + 1])):
            return refuse("none_of_the_choices")
        found = _settle(verdict, choices, tag + "declared", _with_afterthought(said, place))
        reason = found.index is not None and _contradiction(said, place, found.index, verdict, choices)
        return refuse(reason) if reason else found
    return None


def _instead(sentence: str) -> Verdict:
    """What the sentence after a denial names in its place: "It is B."; "B is loud." only goes on describing."""
    opening = re.split(MARK, sentence)[0]
    named = any(map(str.isalnum, opening)) or only_filler(sentence)
    return affirmed(sentence, most_words=6) if named else Verdict()


def _contradiction(said: list[str], place: int, index: int, verdict: Verdict, choices: Choices) -> str | None:
    """Why a declaration cannot stand: its neighbour names another choice in the other form, or a later one
    differs.

    "Therefore it is a dancer. The answer is D." with dancer = A says two things at once: the letter was
    meant for the text before it. A declaration that revises ("wait, the answer is D") stands.
    """
    # Against a declaration every mention counts, also one in a longer phrase ("a solo female singer").
    said = [sentence.replace(PART, "") for sentence in said]
    before = said[place - 1] if place and not said[place - 1].endswith("?") else ""
    if before and not statements.revises(said[place]):
        earlier = statements.declared(before) or statements.concluded(before)
        other = earlier.resolve(choices)[0]
        if other not in (None, index) and bool(earlier.letters) != bool(verdict.letters):
            return DISAGREE
    later = [
        statements.concluded(sentence) or statements.retracts(sentence) for sentence in said[place + 1 :]
    ]
    differs = any(statement.resolve(choices)[0] not in (None, index) for statement in later)
    return "statements_disagree" if differs else None


def _last_concluded(said: list[str], choices: Choices, tag: str) -> Extraction | None:
    for place in reversed(range(len(said))):
        if reason := statements.refuses(said[place]):
            return refuse(reason)
        if verdict := statements.concluded(said[place]):
            return _settle(verdict, choices, tag + "concluded", said[place])
    return None


def _last_line(marked: str, choices: Choices, tag: str) -> Extraction | None:
    """A choice alone on the last line, after text that settles nothing: "... and it fades.\n\nB".

    No answer: one of several such lines (a list), and what an open line before it leads to ("It is not:", "Is it";
    `statements.leads_on`).
    """
    *before, last = [line.strip() for line in marked.splitlines() if line.strip()]
    verdict = _bare(last) if before else None
    if verdict is None or last.endswith((":", "-", ",")) or before[-1][-1] not in ".!。！)\"'":
        return None
    if any(map(_bare, before)) or denies(before[-1]) or statements.doubts(before[-1]):
        return None
    if statements.leads_on(sentences(before[-1])[-1]):
        return None
    return _settle(verdict, choices, tag + "last_line", last)


def _mention(said: list[str], choices: Choices, tag: str) -> Extraction:
    verdict = statements.mentioned(said)
    if any(map(statements.unlisted_alternative, said)):
        return refuse("several_choices")
    return _settle(verdict, choices, tag + "mention", "")
