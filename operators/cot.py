"""The four slots of a chain of thought (ARIA-Rubrics, 3.2).

A model is asked for `[PERCEPTION] [ANALYSIS] [REASONING] [ANSWER]`; what it writes is close to that, more
often than exactly that. A *strict* tag stands in brackets, in any language we list, anywhere in the text;
a *loose* one is a heading (`## Perception`, `**Perception**`, `Perception:` or `Perception -` at the start
of a line or sentence) or stands in parentheses or braces, which prose uses too. A loose tag counts only
where the response has no strict tag for that slot; a bare word in running prose never does. A JSON object
with the slots as its keys is a chain as well.

Every pattern here looks at a bounded window around a slot name, so parsing takes time linear in the text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from operators.entities import entities_of
from operators.text import TURN_TOKEN

SLOTS = ("perception", "analysis", "reasoning", "answer")

# The tag names as models translate them, by slot. English first.
NAMES = {
    "perception": "perception percepción percepcion percepção percezione wahrnehmung восприятие 感知 知覚 인식 지각",
    "analysis": "analysis análisis analisis analyse análise analisi анализ 分析 분석",
    "reasoning": "reasoning razonamiento raisonnement raciocínio ragionamento begründung schlussfolgerung рассуждение"
    " 推理 推論 추론",
    "answer": "answer respuesta réponse resposta risposta antwort ответ 答案 回答 答え 정답 답변",
}
SLOT_OF = {name: slot for slot, names in NAMES.items() for name in names.split()}
# Names that prose and headings use for other things: only in brackets, and only where the slot has no other strict tag.
VERBS = {"perceive": "perception", "analyze": "analysis", "reason": "reasoning"}


def _any_of(names: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


_ANY_NAME = _any_of(SLOT_OF)
_NAME, _NAME_ANY_CASE = (re.compile(_any_of([*SLOT_OF, *VERBS]), flags) for flags in (0, re.IGNORECASE))
# Full-width letters and digits, one for one, as East Asian keyboards write them.
_WIDE = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
_NARROW = {
    code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))
}

_WINDOW = 40
_OPEN, _CLOSE = r"\[［【<＜〈", r"\]］】>＞〉"
_SQUARE = frozenset(_OPEN + _CLOSE)
# What may stand between a bracket and the name ("[Step 1: PERCEPTION]", "[FINAL ANSWER]") and after it.
_LEAD = r"(?:(?:step|stage|part)?\s{0,2}\d{1,2}\s{0,2}[.:)\-–]?\s{0,2})?(?:final\s|the\s)?\s{0,2}"
_OPENED = re.compile(
    rf"\\{{0,2}}(?P<bracket>[{_OPEN}({{（｛])\s{{0,2}}(?P<end>/|\\|end\s(?:of\s)?)?\s{{0,2}}[*_]{{0,2}}{_LEAD}\Z",
    re.IGNORECASE,
)
_CLOSED = re.compile(
    rf"\s{{0,2}}(?:step|stage|section)?[*_]{{0,2}}\s{{0,2}}:?\s{{0,2}}\\{{0,2}}(?P<bracket>[{_CLOSE})}}）｝])",
    re.IGNORECASE,
)
_LINE_START = re.compile(
    r"(?:^|\n)[ \t>]{0,8}(?P<mark>[#*_=\-•]{0,6})[ \t]{0,3}(?P<number>\d{1,2}[.)][ \t]{0,3})?[*_]{0,3}"
    rf"(?P<lead>{_LEAD})\Z",
    re.IGNORECASE,
)
_SENTENCE_START = re.compile(r"[.!?)\]…。][\"'”]?\s{1,3}[*_]{0,2}(?:Final\s)?\Z")
_DASH = re.compile(r"[ \t]{0,2}[*_]{0,3}[ \t]{1,2}[-–—]{1,2}[ \t]")
_COLON = re.compile(r"[ \t]{0,2}[*_]{0,3}[ \t]{0,2}[:：][*_]{0,3}")
_HEADING_END = re.compile(r"[ \t]{0,2}[*_=#]{0,6}[ \t]{0,4}(?:\n|\Z)")
# "as the [PERCEPTION] says" may refer to a slot and not open one.
_REFERENCE = re.compile(
    r"(?<!\w)(?:in|from|of|by|the|see|per|our|my|this|under|above|your|to|with|and)[ \t]{1,2}[*_\"']{0,2}\Z",
    re.IGNORECASE,
)
_THOUGHT_END = re.compile(r"</\s?(?:think|thinking|thought|step|summary)\s{0,3}>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~)[^\n]{0,40}$", re.MULTILINE)
_MARKUP_BEFORE = re.compile(r"(?P<bold>\*\*|__|\*|_)[ \t]*")
_MARKUP_AFTER = re.compile(
    r"(?:(?:\s|^)(?:\*{1,3}|_{2,3}|-{3,5}|#{1,6}|={3,5})|\n[ \t]*(?:step )?\d{1,2}[.):]|\*\*|__)[ \t*_]*\Z",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"(?P<bold>\*{1,3}|_{1,3})(?P<inner>[^*_\n]+)(?P=bold)")


@dataclass(frozen=True)
class Slots:
    """A parsed chain of thought: "" is an absent slot; `entities` are case-folded, distinct, in order of
    mention.
    """

    perception: str = ""
    analysis: str = ""
    reasoning: str = ""
    answer: str = ""
    entities: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Tag:
    start: int
    end: int
    slot: str | None  # None closes a slot without opening one
    strict: bool
    reference: bool = False  # reads like a mention of the slot


def parse_slots(text: str) -> Slots:
    """Cut a response into its four slots.

    *Our reading*, where the paper is silent: a slot runs from its tag to the next tag of any slot, a
    closing tag (`[/ANALYSIS]`, `</analysis>`, `</think>`, `</step>`), or the end of the text.
    Where a tag is repeated the last occurrence with any text counts, for ANSWER (as in Appendix E) and
    for the other slots alike: a prompt that the model echoes, or a draft that it revises, comes first.
    Tags may be missing or out of order; text before the first tag belongs to no slot. Markdown and code
    fences around a tag are not part of the slot. "the [ANSWER]" is a mention where that slot has a plain
    tag elsewhere or a later slot is open already, else it opens the slot. A JSON object, or a Python dict,
    with two or more of the slots as keys is read where no strict tag stands: a list as its items, an object as
    lines. Brackets may be escaped as in Markdown, and letters full-width.
    """
    tags = _tags(text)
    found = dict.fromkeys(SLOTS, "")
    if not any(tag.strict and tag.slot for tag in tags) and (chain := _json_chain(text)):
        found |= {slot: _clean(body) for slot, body in chain.items()}
        return Slots(**found, entities=entities_of(found["perception"]))
    ends = [tag.start for tag in tags[1:]] + [len(text)]
    for tag, end in zip(tags, ends, strict=False):
        if tag.slot:
            body = _clean(text[tag.end : end])
            found[tag.slot] = body or found[tag.slot]
    return Slots(**found, entities=entities_of(found["perception"]))


def _tags(text: str) -> list[_Tag]:
    """All tags in order; loose ones only for slots that have no strict tag."""
    text = text.translate(_NARROW) if _WIDE.search(text) else text
    lowered = text.lower()
    # Much the faster search, but a few letters change their length in lower case, and then positions would shift.
    names = _NAME.finditer(lowered) if len(lowered) == len(text) else _NAME_ANY_CASE.finditer(text)
    found = [tag for match in names if (tag := _tag_at(text, match.start(), match.end()))]
    if not found:
        return []
    found = _without_mentions(found)
    strict = {tag.slot for tag in found if tag.strict and tag.slot}
    kept = [tag for tag in found if tag.strict or tag.slot not in strict]
    ends = [_Tag(match.start(), match.end(), None, True) for match in _THOUGHT_END.finditer(text)]
    return sorted(kept + ends, key=lambda tag: tag.start)


def _without_mentions(tags: list[_Tag]) -> list[_Tag]:
    """The tags that open or close a slot: a mention looks at a slot that opens elsewhere, or back from a later one."""
    plain = {tag.slot for tag in tags if not tag.reference}
    kept: list[_Tag] = []
    latest = -1
    for tag in tags:
        place = SLOTS.index(tag.slot) if tag.slot else -1
        if tag.slot and tag.reference and (tag.slot in plain or place < latest):
            continue
        kept.append(tag)
        latest = max(latest, place)
    return kept


def _tag_at(text: str, start: int, end: int) -> _Tag | None:
    """The tag that the slot name at `text[start:end]` is part of, or None for a mere word."""
    name = text[start:end]
    glued = start and text[start - 1].isalnum() and not text[start - 1].isdigit()
    if glued or text[end : end + 1].isalnum():
        return None
    before, after = text[max(0, start - _WINDOW) : start], text[end : end + _WINDOW]
    slot = SLOT_OF.get(name.lower())
    opened, closed = _OPENED.search(before), _CLOSED.match(after)
    line = _LINE_START.search(before) if len(before) == start or "\n" in before else None
    # One of the two brackets may be missing, but then the name must look like a tag: in capitals, or opening a line.
    square_left = opened if opened and opened["bracket"] in _SQUARE else None
    square_right = closed if closed and closed["bracket"] in _SQUARE else None
    whole = square_left and square_right
    half = (square_left and (name.isupper() or _line_opens(before, square_left))) or (
        square_right and (name.isupper() or line)
    )
    if name.lower() in VERBS:
        slot = VERBS[name.lower()]
        return (
            replace(_bracketed(text, slot, (start, end), square_left, square_right), strict=False)
            if whole
            else None
        )
    if slot and (whole or half):
        return _bracketed(text, slot, (start, end), square_left, square_right)
    if slot and opened and closed and (name.isupper() or _line_opens(before, opened)):
        return replace(_bracketed(text, slot, (start, end), opened, closed), strict=False)
    return _loose_tag(text, start, end, line)


def _bracketed(
    text: str, slot: str, name: tuple[int, int], opened: re.Match[str] | None, closed: re.Match[str] | None
) -> _Tag:
    """The tag made of the slot name at `name` and the brackets before and after it."""
    left = name[0] - len(opened.group()) if opened else name[0]
    right = name[1] + (closed.end() if closed else 0)
    if opened and opened["end"]:
        return _Tag(left, right, None, True)
    return _Tag(left, right, slot, True, bool(_REFERENCE.search(text[max(0, left - 12) : left])))


def _line_opens(before: str, opened: re.Match[str]) -> bool:
    return not before[: opened.start()].rpartition("\n")[2].strip(" \t*#>_")


def _loose_tag(text: str, start: int, end: int, line: re.Match[str] | None) -> _Tag | None:
    """A heading: with a colon where a line or sentence begins, in bold or in capitals; or alone on its line."""
    name, before, after = text[start:end], text[max(0, start - _WINDOW) : start], text[end : end + _WINDOW]
    colon, heading = _COLON.match(after), _HEADING_END.match(after)
    slot = SLOT_OF.get(name.lower())
    if line:
        marked = (
            line["mark"].strip("-•")
            or line["number"]
            or any(map(str.isdigit, line["lead"]))
            or before.endswith(("*", "_"))
        )
        dash = _DASH.match(after) if name[:1].isupper() else None
        tail = colon or dash or (heading if marked or name.isupper() else None)
        return _Tag(start - (len(before) - line.start()), end + tail.end(), slot, False) if tail else None
    sentence = _SENTENCE_START.search(before)
    if colon and name[:1].isupper() and (sentence or name.isupper() or before.endswith(("**", "__"))):
        left = sentence.start() + 1 if sentence else len(before.rstrip("*_"))
        return _Tag(start - (len(before) - left), end + colon.end(), slot, False)
    return None


def _clean(body: str) -> str:
    """A slot's text without the punctuation, markdown and fences that belong to its tags, and without tokens of turns."""
    body = _FENCE.sub("", TURN_TOKEN.sub("\n", body)).strip().lstrip(":： \t\n")
    lone = _MARKUP_BEFORE.match(body)
    if lone and body.partition("\n")[0].count(lone["bold"]) % 2:
        body = body[lone.end() :].lstrip(":： \t\n")
    while (lone := _MARKUP_AFTER.search(body[-_WINDOW:])) and (
        lone.group().strip(" \t\n*_") or body.rpartition("\n")[2].count("**") % 2
    ):
        body = body[: len(body) - len(lone.group())].rstrip()
    if wrapped := _WRAPPED.fullmatch(body):
        body = wrapped["inner"].strip()
    if body.endswith("]") and "[" not in body:
        body = body[:-1].rstrip()
    return body if any(map(str.isalnum, body)) else ""


# --- a chain as a JSON object -------------------------------------------------------------------------------------

_JSON_DEPTH = 8
_JSON_CHAIN = re.compile(rf"\{{\s{{0,40}}(?P<quote>[\"'])(?:{_ANY_NAME})(?P=quote)\s{{0,10}}:", re.IGNORECASE)


def _json_chain(text: str) -> dict[str, str] | None:
    """The slots of the first JSON object or Python dict whose first key is a slot, or None. One attempt, so linear time."""
    start = _JSON_CHAIN.search(text)
    if not start:
        return None
    try:
        if start["quote"] == '"':
            value = json.JSONDecoder().raw_decode(text, start.start())[0]
        else:  # as Python prints it; JSON has no tuples and no keys but texts
            value = json.loads(json.dumps(ast.literal_eval(text[start.start() : text.rindex("}") + 1])))
    # Cut off, neither JSON nor Python after all, or nested without end.
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    known = {SLOT_OF.get(key.strip().lower()): _as_text(held) for key, held in value.items()}
    chain = {slot: body for slot, body in known.items() if slot}
    return chain if len(chain) > 1 else None


def _as_text(value: Any, depth: int = 0) -> str:
    """A JSON value as the text that it would be without JSON: `{"entities": ["dog", "cat"]}` is `entities: dog, cat`."""
    if value is None or depth > _JSON_DEPTH:
        return ""
    if isinstance(value, dict):
        return "\n".join(f"{storable(key)}: {_as_text(held, depth + 1)}" for key, held in value.items())
    if isinstance(value, list):
        return ", ".join(_as_text(held, depth + 1) for held in value)
    return storable(value) if isinstance(value, str) else json.dumps(value)


def storable(text: str) -> str:
    """`text` without NUL, lone surrogates replaced by U+FFFD: JSON escapes can spell both."""
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")
