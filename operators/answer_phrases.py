"""Whether a choice's words are part of another phrase: "dog" in "hot dog" or "dog whistle"."""

from __future__ import annotations

import re

# A noun or an adjective beside a short choice makes another thing of it, so only words that cannot are let through.
_MOST_WORDS = 3
_SMALL = (
    "a an the this that these those his her its their my your our it he she they we i you who what one all both either "
    "neither nor and or but so then than not no never of in on at to from with without by for as into over under near "
    "between during after before behind against about like while because since if whether is are was were be been being "
    "am do does did has have had can could may might must will would should seem seems appear appears sound sounds also "
    "although though however yet actually perhaps possibly wait only just still even rather more most very too maybe perhaps indeed therefore thus hence answer option choice "
    "letter here there which where when than due given instead correct final"
)
_BEFORE = frozenset(
    (
        _SMALL
        + " choose chose select selected pick picked say said guess think believe hear hears heard see find feel "
        "identify contains contain involves includes features has indicates suggests matches fits except exclude anything "
        "nothing definitely likely single some any other unlike doubt hardly scarcely barely towards toward"
    ).split()
)
# After a choice the noun may also name what was asked for: "the male voice", "jazz music".
_AFTER = frozenset(
    (
        _SMALL
        + " fits makes indicates matches suggests stands wins voice voices speaker speakers sound sounds noise music "
        "genre emotion mood tone tempo chord action time times period scene environment instrument person people "
        "individuals seconds minutes along initially throughout itself alone"
    ).split()
) - {"like"}
_WORD_BEFORE = re.compile(r"([^\W\d_]{2,40}(?:'[^\W\d_]{1,3})?)[- \"'(\[]{1,3}\Z")
_WORD_AFTER = re.compile(r"[- ]([^\W\d_]{2,40}(?:'[^\W\d_]{1,3})?)")
_INFLECTED = ("ing", "ed", "ly", "n't", "'s", "'re")


def in_longer_phrase(match: re.Match[str]) -> bool:
    """Whether a word that is neither small nor inflected stands directly beside a choice of a few words.

    A choice with a number is let through: "two people" is two.
    """
    words = match.group().split()
    if len(words) > _MOST_WORDS or any(map(str.isdigit, match.group())) or not match.group().isascii():
        return False
    before = _WORD_BEFORE.search(match.string[max(0, match.start() - 44) : match.start()])
    after = _WORD_AFTER.match(match.string[match.end() : match.end() + 44])
    return _adds(before, _BEFORE) or _adds(after, _AFTER)


def _adds(found: re.Match[str] | None, let_through: frozenset[str]) -> bool:
    if not found or not found[1].isascii():
        return False
    word = found[1].lower()
    return word not in let_through and not word.endswith(_INFLECTED)
