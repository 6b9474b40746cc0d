"""Which choices a marked text affirms: cues, negation and refusals, sentence by sentence (see
`answer_marks`).

Three strengths of statement: *declared* ("the answer is B", "la respuesta es B", `\\boxed{B}`),
*concluded* ("therefore it must be a dog") and a mere mention. The words lists cover what models write, in
several languages.
"""

from __future__ import annotations

import re

from operators.answer_clauses import ENDS, FILLER, LIST_WORDS, NEGATES, TOKEN, Verdict, affirmed, all_affirmed
from operators.answer_marks import LETTER_MARK, MARK, PART, TEXT_MARK, group_of_mark, index_of_mark

_NOUNS = (
    r"\bans\b(?=\s?[:=])|(?<!to )(?<!not )\banswers?\b(?!\s(?:choices|options|this|the question|from|accurately))|\bsolution\b|\brespuesta\b|\bréponse\b|"
    r"\breponse\b|\bantwort\b|\blösung\b|\bresposta\b|\brisposta\b|\bantwoord\b|\bodpowied\w+\b|\bodpověď\b|\bответ\w*|\bвідповідь\b|"
    r"\bcevap\b|\byanıt\b|\bjawaban\w*|\bđáp án\b|\bcâu trả lời\b|\bsvaret?\b|\bvastaus\b|الإجابة|الجواب|תשובה|उत्तर|答案|答え|正解|回答|정답|답은"
)
_DECLARED = re.compile(
    _NOUNS
    + r"|\b(?:correct|best|right|final|only|closest|remaining|chosen|selected|most (?:likely|appropriate|plausible|suitable|accurate|fitting))\s"
    r"(?:\w+\s){0,2}?(?:option|choice|match|fit|candidate|selection)\b|"
    r"\bi(?:'d| would| will|'ll|'m going to| must| have to)?\s(?:choose|pick|select|go with|opt for|say|believe|think|guess)\b|"
    r"\b(?:choose|select|selected|pick|elijo|escolho|choisis|wähle|scelgo|выбираю)\b|\bmy (?:choice|pick|guess)\b|选择?|選択?|\\boxed",
    re.IGNORECASE,
)
# A cue that is denied declares nothing. A bare verb ("choose") is denied by any denial in its clause ("I would never, ever
# choose", "refuse to pick"); a cue with a subject of its own ("I choose", "the answer") by what embeds or inverts it
# ("I don't think the answer is", "nor would I choose"), since "it is not A, I choose B" denies A alone.
_DENIAL = (
    r"(?:\b(?:not|never|cannot|neither|nor|hardly|nobody|no one|none|no(?!\s?,)|no longer|avoid|against|doubt|unable|"
    r"instead of|rather than|used to|tempted to|almost|nearly)\b|"
    r"n't\b|\b(?:refus\w*|declin\w*|hesita\w*|reluctant|unwilling|afraid|fail\w*|wrong|incorrect|unwise|"
    r"mistake|foolish|absurd|premature|impossible|difficult|hard|forbidden)\sto\b)"
)
_VERB = re.compile(
    r"(?:choose|select|selected|pick|elijo|escolho|choisis|wähle|scelgo|выбираю|选择?|選択?)\Z", re.IGNORECASE
)
_OTHERS = r"\b(?:some|others|people|many|someone|anyone|they|one)\s(?:might|may|could|would)\b"
_CLAUSE = re.compile(
    r"[.;:!?]|\b(?:but|so|however|therefore|thus|hence|then|because|since|although|though)\b|(?<=[\s,])i\b(?=\s(?:choose|pick|select)\b)",
    re.IGNORECASE,
)
_ASIDE = re.compile(r",[^,]{0,60},")
_DENIED_ASIDE = re.compile(r"(?:\b(?:not|never)\b|n't\b),", re.IGNORECASE)
_EMBEDS = re.compile(
    rf"(?:{_DENIAL}\s(?:\w+\s){{0,3}}?(?:think|believe|say|feel|agree|claim|mean|accept|suppose|suggest|guess|true|case|certain|sure|"
    r"convinced|confident|sense|likely)|\b(?:doubt\w*|den(?:y|ies|ied)|disagree\w*|unlikely|untrue|false|improbable|doubtful|unsure|uncertain)"
    r"|\bno\s(?:way|reason|chance|case|scenario|argument))"
    rf"\b(?:(?!{MARK})[^,;:]){{0,60}}\Z",
    re.IGNORECASE,
)
_INVERTS = re.compile(
    rf"(?:{_DENIAL}|\bno\b)(?:(?!{MARK})[^,;:]){{0,40}}\b(?:would|do|did|can|could|will|should|shall|must|may|am)\s\Z",
    re.IGNORECASE,
)
_AT_ONCE = re.compile(
    r"(?:\b(?:wrong|incorrect|worst|false|bad|poor|poorest|weakest|(?:least|un)\s?(?:likely|plausible|suitable|fitting|appropriate|probable|correct))|"
    r"\b(?:no|não|nao|non|ne|не|нельзя)|(?:不|不会|不會|不能|不要|不应|不應|不该|不該|别|別|没有?|沒有?))\s?\Z",
    re.IGNORECASE,
)
_NOT_BOXED = re.compile(r"(?:\b(?:not|never|nor|than|except)|n't)\s[\s$(]{0,3}\Z", re.IGNORECASE)
_OPINION = re.compile(r"\b(?:say|believe|think|guess)\Z", re.IGNORECASE)
# "Option C is correct", "it is option D that fits best", "the sound matches option B".
_FITS = re.compile(
    rf"{MARK}\W{{1,4}}(?:is|was|must be|would be|has to be|seems|appears)\s(?:\w+\s){{0,2}}?(?:correct|right)\b(?!\s(?!because|since|as|and|given|here|so)\w)"
    rf"|{MARK}\W{{1,4}}(?:that\s|which\s)?(?:best\s)?(?:fits|matches)\b"
    rf"|\b(?:match(?:es)?|fits?|corresponds to|points to|aligns with|is consistent with|supports)\W{{1,3}}{LETTER_MARK}",
    re.IGNORECASE,
)
_CONCLUDED = re.compile(
    r"\b(?:therefore|thus|hence|consequently|in conclusion|(?:i |we )?conclude|in summary|to summari[sz]e|ultimately|"
    r"(?:most|best|closest)\b[^,.;:]{0,60}?\b(?:is|are|as)|por lo tanto|donc|daher|portanto|quindi|поэтому)\b|(?:\A|[,;]\s?)so\b|因此|所以|したがって|따라서",
    re.IGNORECASE,
)
_LIKELY = re.compile(
    r"\b(?:likely|probably|sounds? like|points? to(?:wards)?|must be|appears? to be|seems? to be|consistent with|"
    r"best described as|aligns with)\b",
    re.IGNORECASE,
)
_COPULA = re.compile(r"\b(?:is|are|was|as|be|fits|matches|es|ist|est)\b", re.IGNORECASE)
# A sentence without end may hold any number of cues: the last few decide, and none reaches further than this.
_CUES, _REACH = 8, 1500
_LINKED = re.compile(r"\b(?:is|are|was|were|be|it's)\s(?:[\w-]+\s){0,3}?\W{0,3}\Z", re.IGNORECASE)
_BESIDE = re.compile(
    r"\b(?:over|with|behind|under|after|before|during|without|despite|against|amid|alongside|near)\s(?:an?\s|the\s)?\W{0,3}\Z",
    re.IGNORECASE,
)
# "The worst match is B", "Avoid B": what a sentence turns down is named, and no finding.
_AGAINST = re.compile(
    r"\b(?:worst|poorest|weakest|wrong|incorrect|avoid\w*|unlikely|discard\w*|dismiss\w*|omit\w*|skip\w*|nobody|no one|"
    r"refus\w+|hesita\w+|mistake|almost|nearly|considered|least\s(?:likely|plausible|probable|suitable|fitting|appropriate|convincing|"
    r"correct|favou?rite|preferred))\b|\A\W*(?:not (?:selected|chosen|picked)|rejected|excluded|eliminated|discarded|dismissed|ruled out)\b",
    re.IGNORECASE,
)
_NO_CHOICE_FITS = re.compile(
    r"\bnone of (?:the|these|them|those)\b|\bno (?:option|choice|answer|pair)\b|\bnot (?:among|in|one of|listed)\b[^.]{0,30}\b(?:options|choices)\b|"
    r"\bnone\b[^.]{0,30}\b(?:fits?|match\w*|apply)\b|\A\W*none\W*\Z|\bninguna\b|\baucune\b|\bkeine der\b|以上都不",
    re.IGNORECASE,
)
_UNLISTED = re.compile(
    r"\b(?:answer|option|choice)\b[^.;]{0,20}(?:\bnot|n't)\s(?:listed|given|available|provided|present|offered|included|here|there)\b",
    re.IGNORECASE,
)
_ALL_FIT = re.compile(
    r"\b(?:all|both|any) of (?:the|these|them|those)\b|\ball (?:options|choices)\b", re.IGNORECASE
)
_REFUSES = re.compile(
    r"\b(?:can(?:no|')t|unable to|could ?n[o']t|impossible to|difficult to|not possible to|not able to)\b[^.!?]{0,60}?\b(?:determin|"
    r"identif|answer|tell|analy[sz]|hear|listen|process|conclude|say|know|interpret|choose|pinpoint|assist|infer|calculat|deduce|be (?:determin|identif|answer|known|infer|sure|certain))|"
    r"\b(?:unknown|undetermined|indeterminate|unclear|ambiguous|not specified|not enough|insufficient|i (?:do ?n[o']t|don't) know|no answer|"
    r"not sure|i'm sorry|please (?:provide|clarify)|no (?:lo )?s[eé]|无法|不知道)\b|无法|不知道",
    re.IGNORECASE,
)
_SUPPOSES = re.compile(
    rf"(?:(?!{MARK})\W)*(?:if(?! (?:i|we) (?:had|have|must|were))|suppose|assuming|were it|had (?:it|he|she|they|there|the|this|that))\b",
    re.IGNORECASE,
)
_WOULD = re.compile(r"\b(?:would|could|might)\b|\w'd\b", re.IGNORECASE)
# That one has to choose, or looks at something in particular, is no condition that may fail to hold.
_CONDITION = re.compile(
    r"(?<!\beven )(?<!\bas )(?<!\bknow )(?<!\btell )(?<!\bsee )(?<!\bsure )\b(?:if|provided(?=\s(?:that|it|he|she|they|there)\b)|assuming(?:\sthat)?|were(?=\s(?:it|he|she|they)\b))\s"
    r"(?!(?:i|we|you|one)\s(?:really\s|only\s|just\s)?(?:had|have|has|must|were|was|am|are|may|can|could|need\w*|consider\w*|look\w*|focus\w*|take|go|rely)\b"
    r"(?!\sheard)|(?:any|anything|so|possible|necessary|needed|forced|pressed|pushed|asked|required|at all|not|only)\b)",
    re.IGNORECASE,
)
_JOINED = re.compile(r"\b(?:but|and)\s\Z", re.IGNORECASE)
_RETRACTS = re.compile(
    r"\W*(?:wait|no|actually|correction|sorry|oops|hmm|on second thought)\b", re.IGNORECASE
)
# The words of a retraction deny what came before and not what they bring: "No wait, B."
_TAKEN_BACK = re.compile(
    r"(?:\W*(?:wait|actually|correction|sorry|oops|hmm|on second thought|no(?=\s*[,.:;!-]|\s(?:wait|sorry|actually)\b))\b)+",
    re.IGNORECASE,
)
_DOUBTS = re.compile(
    r"\W*(?:(?:but|however|though|although|or|then again)\b\W*)?(?:perhaps|maybe|possibly|it (?:may|might|could))\b"
    r"[^.!?]{0,40}?(?:\bnot\b|n't\b)",
    re.IGNORECASE,
)
_REVISES = re.compile(
    r"\b(?:wait|actually|however|but|correction|on second thought|instead|reconsider\w*|no)\b", re.IGNORECASE
)


def declared(sentence: str) -> Verdict:
    """What a sentence declares to be the answer, before or after the cue."""
    cues = [] if supposes(sentence) else _cues(sentence)
    for cue in reversed(cues[-_CUES:]):
        if _OPINION.search(cue.group()) and not _is_whole_opinion(sentence[cue.end() : cue.end() + _REACH]):
            continue
        said = sentence[cue.end() : cue.end() + _REACH].partition(";")[0]
        if verdict := affirmed(said, most_words=6, blocks=True):
            return verdict
    before = sentence[max(0, cues[0].start() - _REACH) : cues[0].start()] if cues else ""
    gap = re.split(MARK, before)[-1]
    if gap != before and len(gap.split()) <= 6 and _COPULA.search(gap):
        return _whole_mentions(re.split(r"[;:]\s", before)[-1])
    fits = [] if supposes(sentence) else list(_FITS.finditer(sentence))
    if not fits:
        return Verdict()
    return _whole_mentions(
        re.split(r"[;:]\s", sentence[max(0, fits[-1].end() - _REACH) : fits[-1].end()])[-1]
    )


def _cues(sentence: str) -> list[re.Match[str]]:
    """Every cue that is not denied, of the last few."""
    cues = list(_DECLARED.finditer(sentence))
    return cues[: -2 * _CUES] + [cue for cue in cues[-2 * _CUES :] if not _is_denied(sentence, cue)]


def _is_denied(sentence: str, cue: re.Match[str]) -> bool:
    """Whether what a cue brings is what the sentence does not choose: "I would not choose", "the wrong answer is"."""
    before, said = sentence[max(0, cue.start() - 200) : cue.start()], cue.group()
    if said == "\\boxed":
        return bool(_NOT_BOXED.search(before))
    if re.search(r"\b(?:wrong|incorrect|worst)\b", said, re.IGNORECASE) or _AT_ONCE.search(before):
        return True
    if _EMBEDS.search(before):
        return True
    if not _VERB.search(said):
        return False
    if said[0] in "iI" and said[1:2] in " '":
        return bool(_INVERTS.search(before))
    clause = _DENIED_ASIDE.sub(" not ", _ASIDE.sub(" ", _CLAUSE.split(before)[-1])).rpartition(",")[2]
    return bool(re.search(f"{_DENIAL}|{_OTHERS}", clause, re.IGNORECASE))


def without_denied_cues(sentence: str) -> str:
    """A sentence with "not" for every cue that is denied, so that nothing after it counts as named.

    A refusal ("I cannot choose between A and B") stays as it is.
    """
    if _REFUSES.search(sentence):
        return sentence
    denied = [cue for cue in list(_DECLARED.finditer(sentence))[-2 * _CUES :] if _is_denied(sentence, cue)]
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
    cue = None if would_if(sentence) else _CONCLUDED.search(sentence)
    return affirmed(sentence[cue.end() : cue.end() + _REACH]) if cue else Verdict()


def mentioned(text_sentences: list[str]) -> Verdict:
    """Everything that is named and neither denied, asked nor supposed; empty where no mention stands as a
    finding.

    A mention counts as a finding at the end of a one-sentence response, directly after a copula, or after
    "likely" and the like; elsewhere the words of a choice may just be part of the story.
    """
    told = [s for s in text_sentences if not s.endswith("?") and not supposes(s)]
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
    if not found or after.startswith(PART) or _BESIDE.search(before) or _AGAINST.search(before):
        return False
    final = re.match(r"[\s.!\"'\])}>:]{0,6}(?:,|\Z)", after)
    linked = _LINKED.search(before) and (final or before[-1:] in "\"'")
    return bool((alone and final and not after.startswith(",")) or linked or _LIKELY.search(before))


def refuses(sentence: str) -> str | None:
    """The reason why a sentence gives no answer at all, or None."""
    if unlisted(sentence) or _NO_CHOICE_FITS.search(sentence):
        return "none_of_the_choices"
    if _ALL_FIT.search(sentence):
        return "several_choices"
    return "refusal" if _REFUSES.search(sentence) else None


def unlisted(sentence: str) -> bool:
    """Whether a sentence says that the answer is not among the choices; what it names then is second best."""
    return bool(_UNLISTED.search(sentence))


def has_cue(sentence: str) -> bool:
    """Whether a sentence speaks of the answer."""
    return bool(_DECLARED.search(sentence))


def revises(sentence: str) -> bool:
    """Whether a sentence takes back what came before it ("wait", "actually")."""
    return bool(_REVISES.search(sentence))


def doubts(sentence: str) -> bool:
    """Whether a sentence takes back the one before it without naming another choice: "But perhaps it does not."."""
    return bool(_DOUBTS.match(sentence)) and not re.search(MARK, sentence)


def supposes(sentence: str) -> bool:
    """Whether a sentence only supposes something ("if it were a dog, ...", "I would pick B if it barked")."""
    return bool(_SUPPOSES.match(sentence)) or would_if(sentence)


def weighs(sentence: str) -> bool:
    """Whether a sentence gives shares, or none at all, to what it names: "A, 60%; B, 40%", "A: 0%"."""
    shares = _SHARE.findall(sentence)
    return len(shares) > 1 or "0" in shares


_SHARE = re.compile(r"(\d{1,3})(?:\.\d+)?\s?%")


def would_if(sentence: str) -> bool:
    """Whether a sentence would name a choice on a condition: "I would pick B if it barked", and not "if I had to choose"."""
    for condition in _CONDITION.finditer(sentence):
        before = sentence[max(0, condition.start() - _REACH) : condition.start()]
        clause = re.split(r"[;:.]|\b(?:but|because|since)\b", before, flags=re.IGNORECASE)[-1]
        if _WOULD.search(clause) and (re.search(MARK, clause) or has_cue(clause)):
            return True
        if _JOINED.search(before) and re.search(MARK, sentence[condition.end() :]):
            return True  # "A, but if it barked, B"
    return False


def retracts(sentence: str) -> Verdict:
    """What a sentence that takes back the one before it affirms ("no, it's C")."""
    if not _RETRACTS.match(sentence):
        return Verdict()
    taken_back = _TAKEN_BACK.match(sentence)
    return all_affirmed(sentence[taken_back.end() :] if taken_back else sentence)


_APPOSED = re.compile(
    rf"({LETTER_MARK})[\s)\]\"'*]{{0,4}},?\s{{0,2}}[(-]?\s?"
    r"(?:which\s(?:is|means|says|stands for)|that\sis|namely|meaning|i\.?e\.?|(?:as|because|since)\s(?:it|this|that)(?:'s|\sis|\swas))"
    rf"\b,?\s(?:(?:clearly|simply|the|an?|option|choice|answer)\s){{0,3}}[\"'(]{{0,2}}({TEXT_MARK})(?!{PART})(?=\W*(?:[.,;)!]|\Z))",
    re.IGNORECASE,
)


def apposed(sentence: str) -> list[Verdict]:
    """What a sentence says a letter stands for: "B, which is a dog", "B, as it is a dog"."""
    return [
        Verdict(frozenset([index_of_mark(letter)]), frozenset([group_of_mark(text)]))
        for letter, text in _APPOSED.findall(sentence)
    ]


def unlisted_alternative(sentence: str) -> bool:
    """Whether a choice is offered beside something that is none: "'Lake' or 'Ocean'", "B or none", in either order."""
    return any(offer.search(sentence) for offer in (_BEFORE_OTHER, _AFTER_OTHER, _OR_NONE))


_BEFORE_OTHER = re.compile(
    rf"{TEXT_MARK}[\"')\]]{{0,2}}[\s,(]{{1,3}}or\s(?:(?:perhaps|possibly|maybe)\s)?[\"'(]{{0,2}}"
    r"(?!any|no|not|another|other|similar|simply|perhaps|possibly|maybe|rather)\w"
)
_NONE = r"(?:none|neither|nothing)\b"
_OR_NONE = re.compile(
    rf"{MARK}[\"')\]]{{0,2}}[\s,(]{{1,3}}or\s(?:(?:perhaps|possibly|maybe|else|rather)\s)?{_NONE}|\b{_NONE}[\s,(]{{1,3}}or\s(?:\w+\s){{0,2}}?{MARK}",
    re.IGNORECASE,
)
_AFTER_OTHER = re.compile(
    rf"(?<!\bmore)(?<!\bone)\w[\"')\]]{{0,2}}\sor\s[\"'(]{{0,2}}(?:an?\s|the\s)?{TEXT_MARK}"
)


# "Let me go through the options one by one.", "The sources are listed below.": what follows may be the first of a list
# that was cut off.
_LISTS = re.compile(
    r"\b(?:consider|go|look|walk|run|examine|evaluate|check|weigh|compare|analy[sz]e|assess|discuss)\b[^.!?]{0,40}"
    r"\b(?:options|choices|candidates|possibilities|each|in turn|one by one)\b|\b(?:below|follows|following)\W*\Z",
    re.IGNORECASE,
)
# "I would rule out the following.", "Here is the worst match.": what follows is no answer.
_REJECTS = re.compile(
    r"\b(?:rul(?:e|es|ed|ing) out|exclud\w+|eliminat\w+|reject\w*|discard\w*|dismiss\w*|wrong|incorrect|except|worst|least)\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"\A\W*(?:here|below)\b|\bfollowing\b|\b(?:below|this|these|one|choice|option)\W*\Z", re.IGNORECASE
)


# "These are incorrect.", "I can rule those out.": what is rejected is only pointed at, and may be what stands below. "The others
# are wrong." and "Engines are ruled out." say what they reject, and it is not the line below.
_POINTED = (
    r"(?:(?:all|both|each|any)\s(?:of\s)?)?(?:(?:these|those|this|that|the)\s(?:ones?|options?|choices?|answers?|candidates?)"
    r"|these|those|they|them|this|that|it)"
)
_DISOWNS = re.compile(
    rf"\W*(?:\w+,?\s)?(?:(?:{_POINTED}\s(?:\w+\s){{1,3}}?)?(?:wrong|incorrect|false|implausible|impossible)"
    rf"|{_POINTED}\s(?:\w+\s){{1,3}}?(?:ruled out|excluded|eliminated|rejected|discarded|dismissed)"
    rf"|{_POINTED}\s(?:\w+n['’]t|\w+\snot|cannot|never)\s(?:\w+\s)?(?:fit|match|apply|work)"
    rf"|(?:\w+\s){{0,3}}?(?:(?:rule|ruled)\s{_POINTED}\sout|(?:rule out|exclude|eliminate|reject|discard|dismiss)\s{_POINTED}))\W*",
    re.IGNORECASE,
)


def leads_on(sentence: str) -> bool:
    """Whether a sentence announces a list, or rejects choices without saying which."""
    rejects = (_REJECTS.search(sentence) and _POINTS.search(sentence)) or _DISOWNS.fullmatch(sentence)
    return bool(rejects or (_LISTS.search(sentence) and not has_cue(sentence)))
