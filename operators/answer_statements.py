"""Which choices a marked text affirms: cues, negation and refusals, sentence by sentence (see
`answer_marks`).

Three strengths of statement: *declared* ("the answer is B", "la respuesta es B", `\\boxed{B}`),
*concluded* ("therefore it must be a dog") and a mere mention. The words lists cover what models write, in
several languages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from operators.answer_marks import LETTER_MARK, MARK, TEXT_MARK, Choices, group_of_mark, index_of_mark

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
_OPINION = re.compile(r"\b(?:say|believe|think|guess)\Z", re.IGNORECASE)
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
_NO_CHOICE_FITS = re.compile(
    r"\bnone of (?:the|these|them|those)\b|\bno (?:option|choice|answer|pair)\b|\bnot (?:among|in|one of|listed)\b[^.]{0,30}\b(?:options|choices)\b|"
    r"\bnone\b[^.]{0,30}\b(?:fits?|match\w*|apply)\b|\A\W*none\W*\Z|\bninguna\b|\baucune\b|\bkeine der\b|以上都不",
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
    r"\W*(?:if(?! (?:i|we) (?:had|have|must|were))|suppose|assuming|were it)\b", re.IGNORECASE
)
_RETRACTS = re.compile(
    r"\W*(?:wait|no|actually|correction|sorry|oops|hmm|on second thought)\b", re.IGNORECASE
)
_REVISES = re.compile(
    r"\b(?:wait|actually|however|but|correction|on second thought|instead|reconsider\w*|no)\b", re.IGNORECASE
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TOKEN = re.compile(rf"{MARK}|[^\W_]+(?:'[^\W_]+)*|[^\w\s]")
_IS_MARK = re.compile(MARK)
_NEGATES = _words(
    "not no never neither nor cannot except excluding exclude excluded excludes eliminate eliminated "
    "eliminates eliminating reject rejected rejects rejecting rule ruled rules ruling unlike than "
    "instead besides other others nicht kein keine pas non não niet nie ni не нет 不是 不 wrong incorrect "
    "false unlikely less implausible irrelevant inconsistent absent impossible"
)
_NEGATES_BACKWARD_ONLY = _words("wrong incorrect false implausible irrelevant inconsistent absent impossible")
_AUXILIARIES = _words(
    "is are was were do does did can could would will be been seem seems also both all options option "
    "therefore choices"
)
_LIST_WORDS = _words("and or nor / \" ' ( ) [ ] , a an the option either y o und oder et ou")
_RESETS = _words(
    "but however so then answer ; : . because since although though hence therefore sondern sino mais"
)
_ENDS = _words(
    "because since as while whereas although though given due which considering where porque weil parce car"
)
_FILLER = _words(
    "is are be it it's its that this the an a most likely probably clearly definitely option choice "
    "letter answer correct final would should must will therefore text mathrm textbf i think not but "
    "rather than either neither nor or and of indeed simply s to my number one es la el le est ist "
    "lautet die der é o il è adalah là jest är er on hij opción opcion correcta correta corretta "
    "correcte exacta certa bonne richtig richtige"
)
_COPULAS = _words("is be es ist est")
_BLOCKS = _words(
    "based supported derived given by from about due question requires depends provide using contains "
    "includes listed among"
)


@dataclass(frozen=True)
class Verdict:
    """The choices that one statement affirms: letter marks and text groups."""

    letters: frozenset[int | None] = frozenset()
    groups: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.letters or self.groups)

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
            return None, "letter_and_text_disagree"
        if letter is None:
            return None, "letter_out_of_range"
        return (None, "empty_choice") if letter in choices.empty else (letter, None)


@dataclass(frozen=True)
class Named:
    """One mark in a statement: where it stands among the tokens, and whether it is affirmed."""

    place: int
    mark: str
    affirmed: bool


def sentences(marked: str) -> list[str]:
    """The sentences of a marked text; a colon or a copula at a line's end runs on."""
    marked = re.sub(r"(:|\b(?:is|are|es|ist|est))[ \t]{0,4}\n\s*", r"\1 ", marked)
    parts = re.split(r"(?<=[.!?])[\"')\]]{0,3}\s|(?<=[.!?])(?=" + MARK + r")|\n|[。！？]", marked)
    return [part.strip() for part in parts if part and part.strip()]


def named(tokens: list[str]) -> list[Named]:
    """The marks among `tokens`, each affirmed or denied ("not A", "B rather than A", "A and B are wrong")."""
    found: list[Named] = []
    negated, run, last = False, 0, -1  # `run`: how many of the last marks stand in one list
    for place, token in enumerate(tokens):
        word = token.lower()
        if _IS_MARK.match(token):
            found.append(Named(place, token, not negated))
            run, last = run + 1, place
        elif _is_negation(word, tokens, place):
            if run and all(
                between.lower() in _AUXILIARIES for between in tokens[last + 1 : place] if between.isalnum()
            ):
                found[-run:] = [Named(mark.place, mark.mark, False) for mark in found[-run:]]
            negated, run = word not in _NEGATES_BACKWARD_ONLY, 0
        elif word in _RESETS or (word == "," and not _continues_list(tokens, place)):
            negated, run = False, 0
        elif word not in _LIST_WORDS and word not in _AUXILIARIES and word.isalnum():
            run = 0
    return found


def _is_negation(word: str, tokens: list[str], place: int) -> bool:
    doubtless = word == "no" and tokens[place + 1 : place + 2] in (["doubt"], ["question"])
    return (word in _NEGATES or word.endswith("n't")) and not doubtless


def _continues_list(tokens: list[str], comma: int) -> bool:
    """Whether the tokens after a comma go on with a list of marks: ", B", ", or B"."""
    for token in tokens[comma + 1 : comma + 6]:
        if _IS_MARK.match(token):
            return True
        if token.lower() not in _LIST_WORDS:
            return False
    return False


def affirmed(text: str, most_words: int | None = None, blocks: bool = False) -> Verdict:
    """What the text after a cue affirms, up to a subordinate clause.

    A letter counts only when nothing but filler stands before it, so that no article or initial is read
    as a choice; a choice's text may stand up to `most_words` words after the cue.
    """
    tokens = _main_clause(_TOKEN.findall(text))
    letters: set[int | None] = set()
    groups: set[int] = set()
    start, joined = 0, True
    for mark in named(tokens):
        words = [
            token.lower()
            for token in tokens[start : mark.place]
            if token[0].isalnum() and not _IS_MARK.match(token)
        ]
        is_letter = bool(re.match(LETTER_MARK, mark.mark))
        near = all(word in _FILLER or not word.isascii() for word in words) or (
            words[-1] in _COPULAS and len(words) <= 8 and not _BLOCKS & set(words)
        )
        reached = (
            near
            if is_letter
            else (most_words is None or len(words) <= most_words) and not (blocks and _BLOCKS & set(words))
        )
        joined = joined and reached
        if mark.affirmed and joined:
            letters |= {index_of_mark(mark.mark)} if is_letter else set()
            groups |= set() if is_letter else {group_of_mark(mark.mark)}
        if joined:
            start = mark.place
    return Verdict(frozenset(letters), frozenset(groups))


def _main_clause(tokens: list[str]) -> list[str]:
    """The tokens up to a reason or a remark that follows the first mark."""
    first = next((place for place, token in enumerate(tokens) if _IS_MARK.match(token)), len(tokens))
    for place in range(first + 1, len(tokens)):
        word = tokens[place].lower()
        held = "".join(tokens[place + 1 : place + 3])
        if word in _ENDS or word == ";" or (word == "(" and not re.fullmatch(rf"{MARK}\)", held)):
            return tokens[:place]
    return tokens


def declared(sentence: str) -> Verdict:
    """What a sentence declares to be the answer, before or after the cue."""
    cues = [] if supposes(sentence) else list(_DECLARED.finditer(sentence))
    for cue in reversed(cues[-_CUES:]):
        if _OPINION.search(cue.group()) and not _is_whole_opinion(sentence[cue.end() : cue.end() + _REACH]):
            continue
        if verdict := affirmed(sentence[cue.end() : cue.end() + _REACH], most_words=6, blocks=True):
            return verdict
    before = sentence[max(0, cues[0].start() - _REACH) : cues[0].start()] if cues else ""
    gap = re.split(MARK, before)[-1]
    if gap != before and len(gap.split()) <= 6 and _COPULA.search(gap):
        return _all_affirmed(re.split(r"[;:]\s", before)[-1])
    return Verdict()


def _is_whole_opinion(text: str) -> bool:
    """Whether "I think ..." goes on with a choice and little else: "I think the dog is far away" chooses nothing."""
    before, *after = re.split(MARK, text, maxsplit=1)
    follows = _TOKEN.findall(after[0])[:1] if after else []
    plain = all(word.lower() in _FILLER for word in _TOKEN.findall(before) if word[0].isalnum())
    return plain and all(
        not word[0].isalnum() or word.lower() in _ENDS | _NEGATES | _LIST_WORDS for word in follows
    )


def _all_affirmed(text: str) -> Verdict:
    marks = [mark.mark for mark in named(_TOKEN.findall(text)) if mark.affirmed]
    letters = {index_of_mark(mark) for mark in marks if re.match(LETTER_MARK, mark)}
    return Verdict(
        frozenset(letters), frozenset(group_of_mark(mark) for mark in marks if re.match(TEXT_MARK, mark))
    )


def concluded(sentence: str) -> Verdict:
    """What a sentence concludes ("therefore ...", "the most likely source is ...")."""
    cue = _CONCLUDED.search(sentence)
    return affirmed(sentence[cue.end() : cue.end() + _REACH]) if cue else Verdict()


def denies(sentence: str) -> bool:
    """Whether a sentence names choices only to deny them."""
    marks = named(_TOKEN.findall(sentence))
    return bool(marks) and not any(mark.affirmed for mark in marks)


def only_filler(text: str) -> bool:
    """Whether nothing but marks, punctuation and small words stands in a text."""
    return all(
        word.lower() in _FILLER for word in _TOKEN.findall(re.sub(MARK, " ", text)) if word[0].isalnum()
    )


def mentioned(text_sentences: list[str]) -> Verdict:
    """Everything that is named and neither denied, asked nor supposed; empty where no mention stands as a
    finding.

    A mention counts as a finding at the end of a one-sentence response, directly after a copula, or after
    "likely" and the like; elsewhere the words of a choice may just be part of the story.
    """
    told = [s for s in text_sentences if not s.endswith("?") and not supposes(s)]
    every = [_all_affirmed(sentence) for sentence in told]
    groups = frozenset(group for verdict in every for group in verdict.groups)
    if len(groups) == 1:
        wanted = chr(ord(TEXT_MARK[1]) + next(iter(groups)))
        if not any(_is_finding(sentence, wanted, len(text_sentences) == 1) for sentence in told):
            return Verdict()
    return Verdict(frozenset(), groups)


def _is_finding(sentence: str, wanted: str, alone: bool) -> bool:
    before, found, after = sentence.rpartition(wanted)
    before = before[-200:]
    if not found or _BESIDE.search(before):
        return False
    final = re.match(r"[\s.!\"'\])}>:]{0,6}(?:,|\Z)", after)
    linked = _LINKED.search(before) and (final or before[-1:] in "\"'")
    return bool((alone and final and not after.startswith(",")) or linked or _LIKELY.search(before))


def refuses(sentence: str) -> str | None:
    """The reason why a sentence gives no answer at all, or None."""
    if _NO_CHOICE_FITS.search(sentence):
        return "none_of_the_choices"
    if _ALL_FIT.search(sentence):
        return "several_choices"
    return "refusal" if _REFUSES.search(sentence) else None


def has_cue(sentence: str) -> bool:
    """Whether a sentence speaks of the answer."""
    return bool(_DECLARED.search(sentence))


def revises(sentence: str) -> bool:
    """Whether a sentence takes back what came before it ("wait", "actually")."""
    return bool(_REVISES.search(sentence))


def supposes(sentence: str) -> bool:
    """Whether a sentence only supposes something ("if it were a dog, ...")."""
    return bool(_SUPPOSES.match(sentence))


def retracts(sentence: str) -> Verdict:
    """What a sentence that takes back the one before it affirms ("no, it's C")."""
    return _all_affirmed(sentence) if _RETRACTS.match(sentence) else Verdict()


def unlisted_alternative(sentence: str) -> bool:
    """Whether a choice is offered beside something that is none: "'Lake' or 'Ocean'"."""
    return bool(
        re.search(
            rf"{TEXT_MARK}[\"')\]]{{0,2}}\sor\s[\"'(]{{0,2}}(?!any|no|not|another|other|similar|simply)\w",
            sentence,
        )
    )
