"""The four slots of a chain of thought, and the sound entities that its Perception lists (ARIA-Rubrics, 3.2
and 3.3.1).

A model is asked for `[PERCEPTION] [ANALYSIS] [REASONING] [ANSWER]`; what it writes is close to that, more
often than exactly that. A *strict* tag stands in brackets, in any language we list, anywhere in the text;
a *loose* one is a heading (`## Perception`, `**Perception**`, `Perception:` at the start of a line or
sentence). A loose tag counts only where the response has no strict tag for that slot; a bare word in
running prose never does.

Every pattern here looks at a bounded window around a slot name, so parsing takes time linear in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
_ANY_NAME = "|".join(sorted(map(re.escape, SLOT_OF), key=len, reverse=True))
_NAME, _NAME_ANY_CASE = re.compile(_ANY_NAME), re.compile(_ANY_NAME, re.IGNORECASE)

_WINDOW = 40
_OPEN, _CLOSE = r"\[［【<＜〈", r"\]］】>＞〉"
# What may stand between a bracket and the name ("[Step 1: PERCEPTION]", "[FINAL ANSWER]") and after it.
_LEAD = r"(?:(?:step|stage|part)?\s{0,2}\d{1,2}\s{0,2}[.:)\-–]?\s{0,2})?(?:final\s|the\s)?\s{0,2}"
_OPENED = re.compile(
    rf"[{_OPEN}]\s{{0,2}}(?P<end>/|\\|end\s(?:of\s)?)?\s{{0,2}}[*_]{{0,2}}{_LEAD}\Z", re.IGNORECASE
)
_CLOSED = re.compile(
    rf"\s{{0,2}}(?:step|stage|section)?[*_]{{0,2}}\s{{0,2}}:?\s{{0,2}}[{_CLOSE}]", re.IGNORECASE
)
_LINE_START = re.compile(
    r"(?:^|\n)[ \t>]{0,8}(?P<mark>[#*_=\-•]{0,6})[ \t]{0,3}(?P<number>\d{1,2}[.)][ \t]{0,3})?[*_]{0,3}"
    rf"(?P<lead>{_LEAD})\Z",
    re.IGNORECASE,
)
_SENTENCE_START = re.compile(r"[.!?)\]…。][\"'”]?\s{1,3}[*_]{0,2}(?:Final\s)?\Z")
_COLON = re.compile(r"[ \t]{0,2}[*_]{0,3}[ \t]{0,2}[:：][*_]{0,3}")
_HEADING_END = re.compile(r"[ \t]{0,2}[*_=#]{0,6}[ \t]{0,4}(?:\n|\Z)")
# "as the [PERCEPTION] says" refers to a slot, it does not open one.
_REFERENCE = re.compile(
    r"(?<!\w)(?:in|from|of|by|the|see|per|our|my|this|under|above|your|to|with|and)[ \t]{1,2}[*_\"']{0,2}\Z",
    re.IGNORECASE,
)
_THINK = re.compile(r"</?(?:think|thinking|thought|step|summary)\b[^<>\n]{0,20}>?", re.IGNORECASE)
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


def parse_slots(text: str) -> Slots:
    """Cut a response into its four slots.

    *Our reading*, where the paper is silent: a slot runs from its tag to the next tag of any slot, a
    closing tag (`[/ANALYSIS]`, `</analysis>`), the end of a `<think>` block, or the end of the text.
    Where a tag is repeated the last occurrence with any text counts, for ANSWER (as in Appendix E) and
    for the other slots alike: a prompt that the model echoes, or a draft that it revises, comes first.
    Tags may be missing or out of order; text before the first tag belongs to no slot. Markdown and code
    fences around a tag are not part of the slot.
    """
    tags = _tags(text)
    found = dict.fromkeys(SLOTS, "")
    ends = [tag.start for tag in tags[1:]] + [len(text)]
    for tag, end in zip(tags, ends, strict=False):
        if tag.slot:
            body = _clean(text[tag.end : end])
            found[tag.slot] = body or found[tag.slot]
    return Slots(**found, entities=entities_of(found["perception"]))


def _tags(text: str) -> list[_Tag]:
    """All tags in order; loose ones only for slots that have no strict tag."""
    lowered = text.lower()
    # Much the faster search, but a few letters change their length in lower case, and then positions would shift.
    names = _NAME.finditer(lowered) if len(lowered) == len(text) else _NAME_ANY_CASE.finditer(text)
    found = [tag for match in names if (tag := _tag_at(text, match.start(), match.end()))]
    if not found:
        return []
    strict = {tag.slot for tag in found if tag.strict and tag.slot}
    kept = [tag for tag in found if tag.strict or tag.slot not in strict]
    ends = [_Tag(match.start(), match.end(), None, True) for match in _THINK.finditer(text)]
    return sorted(kept + ends, key=lambda tag: tag.start)


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
    whole = opened and closed
    half = (opened and (name.isupper() or _line_opens(before, opened))) or (
        closed and (name.isupper() or line)
    )
    if slot and (whole or half):
        left = start - (len(before) - opened.start()) if opened else start
        right = end + (closed.end() if closed else 0)
        if _REFERENCE.search(text[max(0, left - 12) : left]):
            return None
        return _Tag(left, right, None if opened and opened["end"] else slot, True)
    return _loose_tag(text, start, end, line)


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
        tail = colon or (heading if marked or name.isupper() else None)
        return _Tag(start - (len(before) - line.start()), end + tail.end(), slot, False) if tail else None
    sentence = _SENTENCE_START.search(before)
    if colon and name[:1].isupper() and (sentence or name.isupper() or before.endswith(("**", "__"))):
        left = sentence.start() + 1 if sentence else len(before.rstrip("*_"))
        return _Tag(start - (len(before) - left), end + colon.end(), slot, False)
    return None


def _clean(body: str) -> str:
    """A slot's text without the punctuation, markdown and fences that belong to its tags."""
    body = _FENCE.sub("", body).strip().lstrip(":： \t\n")
    lone = _MARKUP_BEFORE.match(body)
    if lone and body.partition("\n")[0].count(lone["bold"]) % 2:
        body = body[lone.end() :].lstrip(":： \t\n")
    while (lone := _MARKUP_AFTER.search(body[-_WINDOW:])) and (
        lone.group().strip(" \t\n*_") or body.rpartition("\n")[2].count("**") % 2
    ):
        body = body[: len(body) - len(lone.group())].rstrip()
    if wrapped := _WRAPPED.fullmatch(body):
        body = wrapped["inner"]
    if body.endswith("]") and "[" not in body:
        body = body[:-1].rstrip()
    return body if any(map(str.isalnum, body)) else ""


# --- entities -----------------------------------------------------------------------------------------------------

_ENTITIES = re.compile(
    r"(?:\b(?:sound|audio|acoustic|key|main|audible)[ \t])?\b(?:entities|entity|entidades|entités|entitäten|entità|сущности|实体|エンティティ)"
    r"(?:[ \t](?:heard|detected|list|present|identified|perceived)){0,2}(?:[ \t]?\([^()\n]{0,60}\))?"
    r"[*_]{0,3}[ \t]{0,2}(?:[:：][*_]{0,3}|(?=\n))",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"\b(?:descriptions?|properties|property|characteristics|features|order|timeline|sequence|details?|summary|notes?|"
    r"descripción|beschreibung|descrição|descrizione|描述|eigenschaften|propiedades)[ \t]?[*_]{0,3}[:：]",
    re.IGNORECASE,
)
_BEFORE_LABEL = re.compile(
    r"[-*•#_. \t]{0,8}(?:\b(?:acoustic|temporal|sound|audio|overall|detailed|brief)[ \t])?\Z", re.IGNORECASE
)
_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*•·+–—▪◦]|\(?\d{1,3}[.)])[ \t]+(?P<item>\S.*)")
_PARENTHESES = re.compile(r"[(（\[][^()（）\[\]\n]{0,300}[)）\]]")
_SENTENCE_END = re.compile(r"[.…。!]{1,4}(?:[ \t]+(?=[^\W\d_])|\Z|(?=\n))|\n")
_SPLIT = re.compile(
    r"[,;，；、|•\n]|(?<=[^\W\d_]{3})/(?=[^\W\d_]{3})|[ \t]/[ \t]|[ \t](?:\d{1,2}[.)]|&)[ \t]|[ \t]and[ \t]|^\d{1,2}[.)][ \t]",
    re.IGNORECASE,
)
# Names that contain "and": the parts are not entities of their own.
_PAIRS = re.compile(
    r"\b(rock|drums?|pots|call|rhythm|back|hustle|up|horse)[ \t]and[ \t](roll|bass|pans|response|blues|forth|bustle|down|carriage)\b",
    re.IGNORECASE,
)
_DETAIL = re.compile(r"[ \t][-–—][ \t]|[:：]|[ \t]?[-–—]{2,}")
_NOTHING = re.compile(
    r"(?:none|no|nothing|nil|null|unknown|unclear|n/?a|not|cannot|etc|and so on|others?|various)(?:$|[ \t.].*)"
    r"|.*\bnot (?:clear|identifiable|audible)\b.*"
)
_WRAPPING = " \t\r\n\"'“”‘’«»`*_[](){}<>.…。!,:;-–—•·"


def entities_of(perception: str) -> tuple[str, ...]:
    """The distinct sound entities on the `Entities:` lines of a Perception, case-folded, in order of mention.

    *Our reading*: a list may stand on the line (`Entities: dog, rain and a car`) or below it as bullets
    or lines; it ends at a sentence end, at a label such as `Description:`, or where the bullets stop.
    What follows a dash or a colon, stands in parentheses, or is a sub-bullet describes an entity and is
    not one. "none", "no clear entities" and the like are no entities. Without an `Entities` line there is
    none, whatever the prose says.
    """
    distinct: dict[str, None] = {}
    labels = list(_ENTITIES.finditer(perception))
    ends = [label.start() for label in labels[1:]] + [len(perception)]
    for label, end in zip(labels, ends, strict=False):
        for item in dict.fromkeys(_listed(perception[label.end() : end])):
            if name := _entity(item):
                distinct.setdefault(name)
    return tuple(distinct)


def _listed(text: str) -> list[str]:
    """The raw items of the list at the start of `text`, which follows an `Entities` label."""
    lines = text.split("\n")
    if not lines[0].strip(" \t*_:"):
        return [item for line in dict.fromkeys(_block(lines[1:])) for item in _split_line(line)]
    whole = 1
    while whole < len(lines) and lines[whole - 1].rstrip().endswith((",", ";", "、")):
        whole += 1
    return _split_line(" ".join(lines[:whole]))


def _block(text: list[str]) -> list[str]:
    """The lines of a list below its label: outermost bullets, or plain lines up to a blank one or a label."""
    lines: list[str] = []
    indent: int | None = None
    for line in text:
        bullet = _BULLET.match(line)
        if bullet and (indent is not None or not lines):
            indent = len(bullet["indent"]) if indent is None else indent
            if _cut_at_label(bullet["item"]).strip(_WRAPPING) == "":
                break
            if len(bullet["indent"]) <= indent:
                lines.append(bullet["item"])
        elif line.strip() and indent is not None and len(line) - len(line.lstrip()) > indent:
            continue
        elif (
            (line.strip() and indent is not None)
            or bullet
            or (line.strip() and not _cut_at_label(line).strip(_WRAPPING))
        ):
            break
        elif line.strip():
            lines.append(line)
        elif lines and indent is None:
            break
    return lines


def _cut_at_label(line: str) -> str:
    """What stands before a label such as "Description:"."""
    label = _LABEL.search(line)
    if not label:
        return line
    lead = _BEFORE_LABEL.search(line[max(0, label.start() - _WINDOW) : label.start()])
    return line[: label.start() - len(lead.group())] if lead else line[: label.start()]


def _split_line(line: str) -> list[str]:
    """One line of a list as items: up to a label or the end of the sentence, details in parentheses left out."""
    line = _cut_at_label(line)
    inner = line.strip(" \t*_.")
    if inner[:1] == "[" and inner[-1:] == "]":
        line = inner[1:-1]
    line = _PAIRS.sub("\\1\x00\\2", _PARENTHESES.sub(" ", line))
    numbered = re.match(r"\s*\d{1,2}[.)]\s", line)
    end = None if numbered else _SENTENCE_END.search(line)
    return _SPLIT.split(line[: end.start()] if end else line)


def _entity(item: str) -> str | None:
    """An item as an entity name, or None where it names nothing."""
    item = item.replace("\x00", " and ").strip(_WRAPPING)
    if detail := _DETAIL.search(item):
        item = item[: detail.start()]
    name = " ".join(item.split()).strip(_WRAPPING).casefold()
    name = name.removeprefix("and ").strip(_WRAPPING)
    if not any(map(str.isalnum, name)) or _NOTHING.fullmatch(name):
        return None
    return name
