"""The sound entities that a Perception lists (ARIA-Rubrics, 3.3.1): the set E of the first metric."""

from __future__ import annotations

import re

_ENTITIES = re.compile(
    r"(?:\b(?:sound|audio|acoustic|key|main|audible)[ \t])?\b(?:entities|entity|entidades|entités|entitäten|entità|сущности|实体|エンティティ)"
    r"(?:[ \t](?:heard|detected|list|present|identified|perceived)){0,2}"
    r"(?:(?:[ \t]?\([^()\n]{0,60}\))?[*_]{0,3}[ \t]{0,2}(?:[:：][*_]{0,3}|(?=\n))"
    r"|(?P<headed>[*_]{0,3}[ \t]{1,2}[-–—]{1,2}[ \t]|[*_]{0,3}[ \t]{0,2}(?=\([^()\n]{1,600}\)[ \t]{0,4}(?:[.;\n]|\Z))))",
    re.IGNORECASE,
)
# Prose has "entities - dogs, say -" and "entities (dogs)" too: there the label must open a line or a sentence.
_OPENS = re.compile(r"(?:\A|\n|[.!?…。\]:])[ \t]{0,4}[-*#•_ \t]{0,8}(?:\d{1,2}[.)][ \t])?\Z")
_PARENTHESISED = re.compile(r"[ \t]?\((?P<held>[^()\n]{1,600})\)[*_]{0,3}[ \t]*\Z")
_LABEL = re.compile(
    r"\b(?:descriptions?|properties|property|characteristics|features|order|timeline|sequence|details?|summary|notes?|"
    r"descripción|beschreibung|descrição|descrizione|描述|eigenschaften|propiedades)[ \t]?[*_]{0,3}[:：]",
    re.IGNORECASE,
)
_WINDOW = 40
_BEFORE_LABEL = re.compile(
    r"[-*•#_. \t]{0,8}(?:\b(?:acoustic|temporal|sound|audio|overall|detailed|brief)[ \t])?\Z", re.IGNORECASE
)
_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*•·+–—▪◦]|\(?\d{1,3}[.)])[ \t]+(?P<item>\S.*)")
_PARENTHESES = re.compile(r"[(（\[][^()（）\[\]\n]{0,300}[)）\]]")
_STOP = re.compile(r"[.…。!]{1,4}(?:[ \t]+(?=[^\W\d_])|\Z|(?=\n))|\n")
# A full stop after these ends no sentence, nor after a single capital ("U.S. anthem", "J. S. Bach"), unless the next
# word opens one.
_SHORTENED = re.compile(
    r"(?<![^\W_])(?:st|dr|mr|mrs|ms|mt|ft|feat|jr|sr|prof|vs|approx|ca|e\.g|i\.e|(?-i:[A-Z]))\Z",
    re.IGNORECASE,
)
_SENTENCE_OPENER = re.compile(
    r"(?:the|it|its|they|he|she|we|i|you|there|this|that|these|those|here|in|and|all|both|one|some|no|not)(?![^\W_])",
    re.IGNORECASE,
)
_SPLIT = re.compile(
    r"[,;，；、|•\n]|(?<=[^\W\d_]{3})/(?=[^\W\d_]{3})|[ \t]/[ \t]|[ \t](?:\d{1,2}[.)]|&)[ \t]|[ \t]and[ \t]|^\d{1,2}[.)][ \t]",
    re.IGNORECASE,
)
_OTHER_PARTS = re.compile(rf"{_SPLIT.pattern}|[:：()（）]", re.IGNORECASE)
# Names that contain "and": the parts are not entities of their own.
_PAIRS = re.compile(
    r"\b(rock|drums?|pots|call|rhythm|back|hustle|up|horse)[ \t]and[ \t](roll|bass|pans|response|blues|forth|bustle|down|carriage)\b",
    re.IGNORECASE,
)
_DETAIL = re.compile(r"[ \t][-–—][ \t]|[:：](?!\d)|(?<!\d)[:：]|[ \t]?[-–—]{2,}")
# "no music" denies an entity; "unknown instrument" is one, "unknown" is not.
_NOTHING = re.compile(
    r"(?:none|no|nothing|not|cannot)(?:[ \t.].*)?|nil|null|n/?a|etc|and so on|others?|(?:and )?more"
    r"|(?:unknown|unclear|various|several|others?)(?: (?:entit(?:y|ies)|sounds?|sources?|others?))?"
    r"|.*\bnot (?:clear|identifiable|audible)\b.*"
)
# How many words a part of a list that is set with full stops has at most, and a line that goes on with a list.
_FEW_WORDS, _PHRASE = 3, 6
_WRAPPING = " \t\r\n\"'“”‘’«»`*_[](){}<>.…。!,:;-–—•·"


def entities_of(perception: str) -> tuple[str, ...]:
    """The distinct sound entities on the `Entities:` lines of a Perception, case-folded, in order of mention.

    *Our reading*: a list may stand on the line (`Entities: dog, rain and a car`), after a dash, in
    parentheses, or below as bullets or lines; it ends at a sentence end, a blank line, a label such as
    `Description:`, or where the bullets stop. Lines below a list that stands on the line go on with it if
    they are bullets or short phrases. Full stops between a few words each ("dog. Cat. Rain") part items.
    What follows a dash or a colon, stands in parentheses, or is a sub-bullet describes an entity and is
    not one. "none", "no clear entities" and the like are no entities. Without an `Entities` line there is
    none, whatever the prose says.
    """
    distinct: dict[str, None] = {}
    labels = [label for label in _ENTITIES.finditer(perception) if _is_label(perception, label)]
    ends = [label.start() for label in labels[1:]] + [len(perception)]
    for label, end in zip(labels, ends, strict=False):
        for item in dict.fromkeys(_listed(label, perception[label.end() : end])):
            if name := _entity(item):
                distinct.setdefault(name)
    return tuple(distinct)


def _is_label(perception: str, label: re.Match[str]) -> bool:
    return label["headed"] is None or bool(
        _OPENS.search(perception[max(0, label.start() - _WINDOW) : label.start()])
    )


def _listed(label: re.Match[str], text: str) -> list[str]:
    """The raw items of the list at the start of `text`, which follows an `Entities` label."""
    lines = text.split("\n")
    if label["headed"] is not None and (held := _PARENTHESISED.match(lines[0].rstrip(" \t.;"))):
        return _split_line(held["held"])
    if not lines[0].strip(" \t*_:"):
        held = _PARENTHESISED.search(label.group())
        if held and not any(map(_BULLET.match, lines[1:2])):
            return _split_line(held["held"])
        return [item for line in dict.fromkeys(_block(lines[1:])) for item in _split_line(line)]
    whole = 1
    while whole < len(lines) and lines[whole - 1].rstrip().endswith((",", ";", "、")):
        whole += 1
    first = " ".join(lines[:whole])
    items = _full_stopped(first) or _split_line(first)
    if _cut_at_label(first) != first or _sentence_end(first) is not None:
        return items
    return items + [item for line in _continued(lines[whole:]) for item in _split_line(line)]


def _full_stopped(line: str) -> list[str]:
    """The items of a list that is set with full stops, or none: few words each, no commas, no sentence."""
    parts = [part.strip() for part in re.split(r"[.。](?:[ \t]+|\Z)", line.strip()) if part.strip()]
    plain = all(len(part.split()) <= _FEW_WORDS and not _SENTENCE_OPENER.match(part) for part in parts)
    short = any(_SHORTENED.search(part) for part in parts[:-1])
    return parts if len(parts) > 1 and plain and not short and not _OTHER_PARTS.search(line) else []


def _continued(lines: list[str]) -> list[str]:
    """The lines that go on with a list begun on its label's line: bullets, or else short phrases, up to the first
    line that is neither.
    """
    bulleted = bool(lines and _BULLET.match(lines[0]))
    kept: list[str] = []
    for line in _block(lines) if bulleted else lines:
        words = line.split()
        told = line.rstrip(" \t*_\"')").endswith((".", "!", "?", "。", "…")) or _SENTENCE_OPENER.match(line)
        named = not bulleted and re.search(r"[:：](?!\d)|^[ \t]*(?:#|[-*_=]{3})|\A\W*\Z", line)
        if not 0 < len(words) <= _PHRASE or told or named or (not bulleted and _BULLET.match(line)):
            break
        kept.append(line)
    return kept


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
    end = None if numbered else _sentence_end(line)
    return _SPLIT.split(line[:end])


def _sentence_end(line: str) -> int | None:
    """Where the first sentence of a line ends; None where it has no end."""
    for stop in _STOP.finditer(line):
        short = stop.group()[0] == "." and _SHORTENED.search(line[max(0, stop.start() - 8) : stop.start()])
        if not short or stop.end() == len(line) or _SENTENCE_OPENER.match(line[stop.end() : stop.end() + 8]):
            return stop.start()
    return None


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
