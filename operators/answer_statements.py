"""Which choices a marked text affirms: cues, negation and refusals, sentence by sentence (see
`answer_marks`).

Three strengths of statement: *declared* ("the answer is B", "la respuesta es B", `\\boxed{B}`),
*concluded* ("therefore it must be a dog") and a mere mention. The words lists cover what models write, in
several languages.
"""

from __future__ import annotations

import re

from operators import answer_cues as says
from operators.answer_clauses import TOKEN, Verdict, affirmed, all_affirmed
from operators.answer_marks import MARK, PART, TEXT_MARK, group_of_mark, index_of_mark
from operators.answer_words import ENDS, FILLER, LIST_WORDS, NEGATES

# A sentence without end may hold any number of cues: the last few decide, and none reaches further than this.
_CUES, _REACH = 8, 1500


def declared(sentence: str) -> Verdict:
    """What a sentence declares to be the answer, before or after the cue."""
    cues = [] if supposes(sentence) else _cues(sentence)
    for cue in reversed(cues[-_CUES:]):
        if says.OPINION.search(cue.group()) and not _is_whole_opinion(
            sentence[cue.end() : cue.end() + _REACH]
        ):
            continue
        said = sentence[cue.end() : cue.end() + _REACH].partition(";")[0]
        if verdict := affirmed(said, most_words=6, blocks=True):
            return verdict
    before = sentence[max(0, cues[0].start() - _REACH) : cues[0].start()] if cues else ""
    gap = re.split(MARK, before)[-1]
    if gap != before and len(gap.split()) <= 6 and says.COPULA.search(gap):
        return _whole_mentions(re.split(r"[;:]\s", before)[-1])
    fits = [] if supposes(sentence) else list(says.FITS.finditer(sentence))
    if not fits:
        return Verdict()
    return _whole_mentions(
        re.split(r"[;:]\s", sentence[max(0, fits[-1].end() - _REACH) : fits[-1].end()])[-1]
    )


def _cues(sentence: str) -> list[re.Match[str]]:
    """Every cue that is not denied, of the last few."""
    cues = list(says.DECLARED.finditer(sentence))
    return cues[: -2 * _CUES] + [cue for cue in cues[-2 * _CUES :] if not _is_denied(sentence, cue)]


def _is_denied(sentence: str, cue: re.Match[str]) -> bool:
    """Whether what a cue brings is what the sentence does not choose: "I would not choose", "the wrong answer is"."""
    before, said = sentence[max(0, cue.start() - 200) : cue.start()], cue.group()
    if said == "\\boxed":
        return bool(says.NOT_BOXED.search(before))
    if re.search(r"\b(?:wrong|incorrect|worst)\b", said, re.IGNORECASE) or says.AT_ONCE.search(before):
        return True
    if says.EMBEDS.search(before):
        return True
    if not says.VERB.search(said):
        return False
    if said[0] in "iI" and said[1:2] in " '":
        return bool(says.INVERTS.search(before))
    clause = says.DENIED_ASIDE.sub(" not ", says.ASIDE.sub(" ", says.CLAUSE.split(before)[-1])).rpartition(
        ","
    )[2]
    return bool(re.search(f"{says.DENIAL}|{says.OTHERS}", clause, re.IGNORECASE))


def without_denied_cues(sentence: str) -> str:
    """A sentence with "not" for every cue that is denied, so that nothing after it counts as named.

    A refusal ("I cannot choose between A and B") stays as it is.
    """
    if says.REFUSES.search(sentence):
        return sentence
    denied = [
        cue for cue in list(says.DECLARED.finditer(sentence))[-2 * _CUES :] if _is_denied(sentence, cue)
    ]
    for cue in reversed(denied):
        sentence = f"{sentence[: cue.start()]} not {sentence[cue.end() :].lstrip(' :')}"
    return sentence


def _whole_mentions(text: str) -> Verdict:
    """Every mark of a text that is not denied, if none of them is part of a longer phrase."""
    return Verdict() if PART in text else all_affirmed(text)


def _is_whole_opinion(text: str) -> bool:
    """Whether "I think ..." goes on with a choice and little else: "I think the dog is far away" chooses nothing."""
    before, *after = re.split(MARK, text, maxsplit=1)
    follows = TOKEN.findall(after[0])[:1] if after else []
    plain = all(word.lower() in FILLER for word in TOKEN.findall(before) if word[0].isalnum())
    return plain and all(
        not word[0].isalnum() or word.lower() in ENDS | NEGATES | LIST_WORDS for word in follows
    )


def concluded(sentence: str) -> Verdict:
    """What a sentence concludes ("therefore ...", "the most likely source is ...")."""
    cue = None if would_if(sentence) else says.CONCLUDED.search(sentence)
    return affirmed(sentence[cue.end() : cue.end() + _REACH]) if cue else Verdict()


def mentioned(text_sentences: list[str]) -> Verdict:
    """Everything that is named and neither denied, asked nor supposed; empty where no mention stands as a
    finding.

    A mention counts as a finding at the end of a one-sentence response, directly after a copula, or after
    "likely" and the like; elsewhere the words of a choice may just be part of the story.
    """
    told = [
        s for s in text_sentences if not s.endswith("?") and not supposes(s) and not says.BUT_NOT.search(s)
    ]
    every = [all_affirmed(sentence) for sentence in told]
    groups = frozenset(group for verdict in every for group in verdict.groups)
    if len(groups) == 1:
        wanted = chr(ord(TEXT_MARK[1]) + next(iter(groups)))
        if not any(_is_finding(sentence, wanted, len(text_sentences) == 1) for sentence in told):
            return Verdict()
    return Verdict(frozenset(), groups)


def _is_finding(sentence: str, wanted: str, alone: bool) -> bool:
    before, found, after = sentence.rpartition(wanted)
    before = before[-200:]
    if not found or after.startswith(PART) or says.BESIDE.search(before) or says.AGAINST.search(before):
        return False
    final = re.match(r"[\s.!\"'\])}>:]{0,6}(?:,|\Z)", after)
    linked = says.LINKED.search(before) and (final or before[-1:] in "\"'")
    return bool((alone and final and not after.startswith(",")) or linked or says.LIKELY.search(before))


def refuses(sentence: str) -> str | None:
    """The reason why a sentence gives no answer at all, or None."""
    if unlisted(sentence) or says.NO_CHOICE_FITS.search(sentence):
        return "none_of_the_choices"
    if says.ALL_FIT.search(sentence):
        return "several_choices"
    return "refusal" if says.REFUSES.search(sentence) else None


def unlisted(sentence: str) -> bool:
    """Whether a sentence says that the answer is not among the choices; what it names then is second best."""
    return bool(says.UNLISTED.search(sentence))


def has_cue(sentence: str) -> bool:
    """Whether a sentence speaks of the answer."""
    return bool(says.DECLARED.search(sentence))


def revises(sentence: str) -> bool:
    """Whether a sentence takes back what came before it ("wait", "actually")."""
    return bool(says.REVISES.search(sentence))


def doubts(sentence: str) -> bool:
    """Whether a sentence takes back the one before it without naming another choice: "But perhaps it does not."."""
    return bool(says.DOUBTS.match(sentence)) and not re.search(MARK, sentence)


def supposes(sentence: str) -> bool:
    """Whether a sentence only supposes something ("if it were a dog, ...", "I would pick B if it barked")."""
    return bool(says.SUPPOSES.match(sentence)) or would_if(sentence)


def weighs(sentence: str) -> bool:
    """Whether a sentence gives shares, or none at all, to what it names: "A, 60%; B, 40%", "A: 0%"."""
    shares = says.SHARE.findall(sentence)
    return len(shares) > 1 or "0" in shares


def would_if(sentence: str) -> bool:
    """Whether a sentence would name a choice on a condition: "I would pick B if it barked", and not "if I had to choose"."""
    for condition in says.CONDITION.finditer(sentence):
        before = sentence[max(0, condition.start() - _REACH) : condition.start()]
        clause = re.split(r"[;:.]|\b(?:but|because|since)\b", before, flags=re.IGNORECASE)[-1]
        if says.WOULD.search(clause) and (re.search(MARK, clause) or has_cue(clause)):
            return True
        if says.JOINED.search(before) and re.search(MARK, sentence[condition.end() :]):
            return True  # "A, but if it barked, B"
    return False


def retracts(sentence: str) -> Verdict:
    """What a sentence that takes back the one before it affirms ("no, it's C")."""
    if not says.RETRACTS.match(sentence):
        return Verdict()
    taken_back = says.TAKEN_BACK.match(sentence)
    return all_affirmed(sentence[taken_back.end() :] if taken_back else sentence)


def apposed(sentence: str) -> list[Verdict]:
    """What a sentence says a letter stands for: "B, which is a dog", "B, as it is a dog"."""
    return [
        Verdict(frozenset([index_of_mark(letter)]), frozenset([group_of_mark(text)]))
        for letter, text in says.APPOSED.findall(sentence)
    ]


def unlisted_alternative(sentence: str) -> bool:
    """Whether a choice is offered beside something that is none: "'Lake' or 'Ocean'", "B or none", in either order."""
    return any(offer.search(sentence) for offer in (says.BEFORE_OTHER, says.AFTER_OTHER, says.OR_NONE))


def leads_on(sentence: str) -> bool:
    """Whether a sentence announces a list, or rejects choices without saying which."""
    rejects = (says.REJECTS.search(sentence) and says.POINTS.search(sentence)) or says.DISOWNS.fullmatch(
        sentence
    )
    return bool(rejects or (says.LISTS.search(sentence) and not has_cue(sentence)))
