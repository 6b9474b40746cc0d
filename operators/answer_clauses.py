"""Which marks a clause affirms: negation, lists of choices, subordinate clauses, revisions and longer phrases."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from operators.answer_marks import LETTER_MARK, MARK, PART, TEXT_MARK, Choices, group_of_mark, index_of_mark
from operators.answer_words import (
    ADVERBS,
    ARTICLES,
    AUXILIARIES,
    BLOCKS,
    CERTAIN,
    CLOSERS,
    COPULAS,
    DENIES_BACKWARD,
    DENIES_WITH,
    ENDS,
    FILLER,
    FITTING,
    LIGHT,
    LIST_WORDS,
    NEGATES,
    NEGATES_FORWARD_ONLY,
    OFFERED,
    OPEN_TURNS,
    RESETS,
    SUPPOSED,
    TAKES_BACK,
    TURNS,
)

DISAGREE = "letter_and_text_disagree"
TOKEN = re.compile(rf"{MARK}|[^\W_]+(?:'[^\W_]+)*|[^\w\s]")
_IS_MARK = re.compile(MARK)
_FAR = 14  # tokens: no turn, and no word that weakens, is looked for further away


@dataclass(frozen=True)
class Verdict:
    """The choices that one statement affirms: letter marks and text groups."""

    letters: frozenset[int | None] = frozenset()
    groups: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.letters or self.groups)

    def __le__(self, other: Verdict) -> bool:
        return self.letters <= other.letters and self.groups <= other.groups

    def resolve(self, choices: Choices) -> tuple[int | None, str | None]:
        """The one index that the statement names, or None and the reason why there is none."""
        if len(self.letters) > 1 or len(self.groups) > 1:
            return None, "several_choices"
        group = choices.groups[next(iter(self.groups))] if self.groups else ()
        if not self.letters:
            return (
                (group[0], None)
                if len(group) == 1
                else (None, "duplicated_choice" if group else "no_choice_named")
            )
        letter = next(iter(self.letters))
        if group and letter not in group:
            return None, DISAGREE
        if letter is None:
            return None, "letter_out_of_range"
        return (None, "empty_choice") if letter in choices.empty else (letter, None)


@dataclass(frozen=True)
class Turn:
    """What a sentence names after a turn, and whether it takes the place of what stood before."""

    verdict: Verdict
    replaces: bool


@dataclass(frozen=True)
class Named:
    """One mark in a statement: where it stands among the tokens, and whether it is affirmed."""

    place: int
    mark: str
    affirmed: bool


def sentences(marked: str) -> list[str]:
    """The sentences of a marked text; a colon or a copula at a line's end runs on."""
    marked = re.sub(r"\b(ans)\.(?=\s)", r"\1:", marked, flags=re.IGNORECASE)
    marked = re.sub(r"\bi\.\s?e\.", "namely", marked, flags=re.IGNORECASE)
    marked = re.sub(r"(:|\b(?:is|are|es|ist|est))[ \t]{0,4}\n\s*", r"\1 ", marked)
    parts = re.split(r"(?<=[.!?])[\"')\]]{0,3}\s|(?<=[.!?])(?=" + MARK + r")|\n|[。！？]", marked)
    return [part.strip() for part in parts if part and part.strip()]


def named(tokens: list[str]) -> list[Named]:
    """The marks among `tokens`, each affirmed or denied ("not A", "B rather than A", "A and B are wrong", "A: no")."""
    found: list[Named] = []
    # `run`: how many of the last marks stand in one list; `last`, `denial`, `reset`: where the last of each stood.
    negated, run, last, denial, reset = False, 0, -1, -1, -1
    asides = _asides(tokens)
    for place, token in enumerate(tokens):
        word = token.lower()
        if place in asides:
            continue
        if _IS_MARK.match(token):
            found.append(Named(place, token, not negated))
            run, last = run + 1, place
        elif _is_negation(word, tokens, place):
            back = 1 if found and _crosses_out(tokens, last, place) else run
            if back and _denies_before(word, tokens, last, place, asides):
                found[-back:] = [Named(mark.place, mark.mark, False) for mark in found[-back:]]
            negated = word not in DENIES_BACKWARD or (
                last <= reset and (not word.isalpha() or _next(tokens, place) in OFFERED)
            )
            run, denial = 0, place
        elif word in (":", "answer") and negated and last < denial:
            continue  # "unlikely: A", "I refuse to answer about A"
        elif word in RESETS or (word == "," and not _continues_list(tokens, place)):
            negated, run, reset = False, 0, place
        elif word.isalnum() and word not in LIST_WORDS | AUXILIARIES and not _only_stresses(word):
            run = 0
    return found


def _next(tokens: list[str], place: int) -> str:
    """The token after a place, in small letters; empty at the end."""
    return tokens[place + 1].lower() if place + 1 < len(tokens) else ""


def _crosses_out(tokens: list[str], last: int, place: int) -> bool:
    """Whether a denial stands by itself behind a mark: "A: no", "A - wrong", "A (incorrect)"."""
    between = [token for token in tokens[last + 1 : place] if not _only_stresses(token.lower())]
    return bool(between) and set(between) <= {":", "-", "=", "("} and _next(tokens, place) in ("", *".,;!)")


def _asides(tokens: list[str]) -> set[int]:
    """The places of what stands between commas before a denial: "A, in my opinion, is not it", but "A, in my opinion, not B"."""
    places: set[int] = set()
    commas = [place for place, mark in enumerate(tokens) if mark == ","]
    for start, end in pairwise(commas):
        inner = [token.lower() for token in tokens[start + 1 : end]]
        plain = all(word.isalnum() and word not in NEGATES | TURNS for word in inner)
        after = [token.lower() for token in tokens[end + 1 : end + 3]]
        denied = (after[:1] == ["not"] and _denies_that(tokens, end + 1)) or (
            after[:1] and after[0] in COPULAS and after[1:] == ["not"]
        )
        if plain and denied and 0 < len(inner) <= 4:
            places.update(range(start, end + 1))
    return places


def _denies_before(word: str, tokens: list[str], last: int, place: int, asides: set[int]) -> bool:
    """Whether a denial is said of the mark at `last`."""
    if word in NEGATES_FORWARD_ONLY:
        return False
    if word == "not" and place == last + 1 and _continues_list(tokens, place):
        return False  # "A not B" is A
    between = [
        token.lower()
        for number, token in enumerate(tokens[last + 1 : place], last + 1)
        if token.isalnum() and number not in asides
    ]
    if word == "not" and all(map(_only_stresses, between)) and _denies_next(tokens, place):
        return False  # and so is "A - certainly not B"
    return all(one in AUXILIARIES | ARTICLES or _only_stresses(one) for one in between)


def _denies_next(tokens: list[str], place: int) -> bool:
    """Whether a mark follows the denial at a place, with no more than an article between."""
    following = [token for token in tokens[place + 1 : place + 3] if token.lower() not in ARTICLES]
    return bool(following) and _IS_MARK.match(following[0]) is not None


def _denies_that(tokens: list[str], place: int) -> bool:
    """Whether the denial at a place is of what was named, and of nothing else: "not it", "not the right answer"."""
    following = [token.lower() for token in tokens[place + 1 : place + 4] if token.lower() not in ARTICLES]
    return not following or not following[0].isalnum() or following[0] in OFFERED | FITTING


def _only_stresses(word: str) -> bool:
    """Whether a word says how sure or how much: "A is definitely not it", "B is in fact wrong"."""
    return word in ADVERBS or word.endswith("ly")


def _is_negation(word: str, tokens: list[str], place: int) -> bool:
    """Whether a word denies: "without a doubt" and "nothing but" do not, "anything but" and "far from" do; "all but" only where
    a statement opens with it ("I eliminated all but the dog")."""
    before = tokens[place - 1].lower() if place else ""
    after = [token.lower() for token in tokens[place + 1 : place + 3] if token.lower() not in ("a", "any")]
    if word == "but":
        opens = all(token.lower() in FILLER or not token.isalnum() for token in tokens[: place - 1])
        return before == "anything" or (before in ("everything", "all") and opens)
    if word in DENIES_WITH:
        return DENIES_WITH[word] == after[:1]
    if word == "least":
        return before != "at"
    if word == "no" and after[:1] and after[0] in TAKES_BACK:
        return False
    if word in ("no", "without"):
        return not CERTAIN & set(after[:1])
    if word == "doubt":
        return before not in ("no", "without", "a", "any", "beyond", "little")
    return word in NEGATES or word.endswith("n't")


def _continues_list(tokens: list[str], comma: int) -> bool:
    """Whether the tokens after a comma go on with a list of marks: ", B", ", or B"."""
    for token in tokens[comma + 1 : comma + 6]:
        if _IS_MARK.match(token):
            return True
        if token.lower() not in LIST_WORDS:
            return False
    return False


def affirmed(text: str, most_words: int | None = None, blocks: bool = False) -> Verdict:
    """What the text after a cue affirms, up to a subordinate clause.

    A letter counts only when nothing but filler stands before it, so that no article or initial is read
    as a choice; a choice's text may stand up to `most_words` words after the cue.
    """
    tokens = _main_clause(TOKEN.findall(text))
    letters: set[int | None] = set()
    groups: set[int] = set()
    start = 0
    for mark in named(tokens):
        words = [
            token.lower()
            for token in tokens[start : mark.place]
            if token[0].isalnum() and not _IS_MARK.match(token)
        ]
        is_letter = bool(re.match(LETTER_MARK, mark.mark))
        near = all(word in FILLER or not word.isascii() for word in words) or (
            words[-1] in COPULAS and len(words) <= 8 and not BLOCKS & set(words)
        )
        reached = (
            near
            if is_letter
            else (most_words is None or len(words) <= most_words) and not (blocks and BLOCKS & set(words))
        )
        if not reached:
            break
        if mark.affirmed and _is_part(tokens, mark):
            return Verdict()
        if mark.affirmed:
            letters |= {index_of_mark(mark.mark)} if is_letter else set()
            groups |= set() if is_letter else {group_of_mark(mark.mark)}
        start = mark.place
    return Verdict(frozenset(letters), frozenset(groups))


def _is_part(tokens: list[str], mark: Named) -> bool:
    return tokens[mark.place + 1 : mark.place + 2] == [PART]


def turned(sentence: str, verdict: Verdict) -> list[Turn]:
    """The marks that a sentence names as well, after a turn: "A, or perhaps B", "A, but it is more likely B".

    Between the turn and the mark stand small words only, and behind a choice's text no further word:
    "but there is also rain in the background" turns nothing.
    """
    tokens = TOKEN.findall(sentence)
    marks = [mark for mark in named(tokens) if mark.affirmed]
    held = next((mark for mark in marks if _of(mark) <= verdict), None)
    return [
        Turn(_of(mark), _replaces(tokens, held.place, turn))
        for mark in marks
        if held and mark.place > held.place and (turn := _turn_before(tokens, held.place, mark))
    ]


def _of(mark: Named) -> Verdict:
    if re.match(LETTER_MARK, mark.mark):
        return Verdict(letters=frozenset([index_of_mark(mark.mark)]))
    return Verdict(groups=frozenset([group_of_mark(mark.mark)]))


def _turn_before(tokens: list[str], held: int, mark: Named) -> int | None:
    """Where the turn before a mark stands, or None: see `turned`."""
    follows = [token for token in tokens[mark.place + 1 : mark.place + 3] if token != PART][:1]
    if (
        re.match(TEXT_MARK, mark.mark)
        and follows
        and follows[0][0].isalnum()
        and follows[0].lower() not in CLOSERS
    ):
        return None
    for place in range(mark.place - 1, max(held, mark.place - _FAR), -1):
        word = tokens[place].lower()
        if word in TURNS and not (word == "no" and _is_negation(word, tokens, place)):
            reason = any(token.lower() in ENDS - TURNS for token in tokens[max(held, place - _FAR) : place])
            return None if word == "or" and reason else place
        if word[0].isalnum() and word not in LIGHT:
            return None
    return None


def _replaces(tokens: list[str], held: int, turn: int) -> bool:
    """Whether the turn settles what was only supposed before: "it could be A, but it is B"."""
    near = (tokens[max(0, held - _FAR) : held], tokens[turn : turn + _FAR])
    before, after = ({token.lower() for token in part} for part in near)
    return bool(before & SUPPOSED) and not after & (SUPPOSED | OPEN_TURNS)


def _main_clause(tokens: list[str]) -> list[str]:
    """The tokens up to a reason or a remark that follows the first mark."""
    first = next((place for place, token in enumerate(tokens) if _IS_MARK.match(token)), len(tokens))
    for place in range(first + 1, len(tokens)):
        word = tokens[place].lower()
        held = "".join(tokens[place + 1 : place + 3])
        crossed = word == "(" and _next(tokens, place) in NEGATES and _next(tokens, place + 1) == ")"
        kept = crossed or re.fullmatch(rf"{MARK}\)", held)
        if word in ENDS or word == ";" or (word == "(" and not kept):
            return tokens[:place]
    return tokens


def all_affirmed(text: str) -> Verdict:
    """Every mark of a text that is not denied."""
    marks = [mark.mark for mark in named(TOKEN.findall(text)) if mark.affirmed]
    letters = {index_of_mark(mark) for mark in marks if re.match(LETTER_MARK, mark)}
    return Verdict(
        frozenset(letters), frozenset(group_of_mark(mark) for mark in marks if re.match(TEXT_MARK, mark))
    )


def denies(sentence: str) -> bool:
    """Whether a sentence names choices only to deny them."""
    marks = named(TOKEN.findall(sentence))
    return bool(marks) and not any(mark.affirmed for mark in marks)


def only_filler(text: str) -> bool:
    """Whether nothing but marks, punctuation and small words stands in a text."""
    return all(word.lower() in FILLER for word in TOKEN.findall(re.sub(MARK, " ", text)) if word[0].isalnum())
