"""The expressions by which statements about an answer are told: cues, denials, conclusions, refusals, conditions, revisions, lists.

`operators.answer_statements` reads sentences with them, in which the choices are marks already (`operators.answer_marks`).
The words cover what models write, in several languages.
"""

from __future__ import annotations

import re

from operators.answer_marks import LETTER_MARK, MARK, PART, TEXT_MARK

NOUNS = (
    r"\bans\b(?=\s?[:=])|(?<!to )(?<!not )\banswers?\b(?!\s(?:choices|options|this|the question|from|accurately))|\bsolution\b|\brespuesta\b|\bréponse\b|"
    r"\breponse\b|\bantwort\b|\blösung\b|\bresposta\b|\brisposta\b|\bantwoord\b|\bodpowied\w+\b|\bodpověď\b|\bответ\w*|\bвідповідь\b|"
    r"\bcevap\b|\byanıt\b|\bjawaban\w*|\bđáp án\b|\bcâu trả lời\b|\bsvaret?\b|\bvastaus\b|الإجابة|الجواب|תשובה|उत्तर|答案|答え|正解|回答|정답|답은"
)
DECLARED = re.compile(
    NOUNS
    + r"|\b(?:correct|best|right|final|only|closest|remaining|chosen|selected|most (?:likely|appropriate|plausible|suitable|accurate|fitting))\s"
    r"(?:\w+\s){0,2}?(?:option|choice|match|fit|candidate|selection)\b|"
    r"\bi(?:'d| would| will|'ll|'m going to| must| have to)?\s(?:choose|pick|select|go with|opt for|say|believe|think|guess)\b|"
    r"\b(?:choose|select|selected|pick|elijo|escolho|choisis|wähle|scelgo|выбираю)\b|\bmy (?:choice|pick|guess)\b|选择?|選択?|\\boxed",
    re.IGNORECASE,
)
# A cue that is denied declares nothing. A bare verb ("choose") is denied by any denial in its clause ("I would never, ever
# choose", "refuse to pick"); a cue with a subject of its own ("I choose", "the answer") by what embeds or inverts it
# ("I don't think the answer is", "nor would I choose"), since "it is not A, I choose B" denies A alone.
DENIAL = (
    r"(?:\b(?:not|never|cannot|neither|nor|hardly|nobody|no one|none|no(?!\s?,)|no longer|avoid|against|doubt|unable|"
    r"instead of|rather than|used to|tempted to|almost|nearly)\b|"
    r"n't\b|\b(?:refus\w*|declin\w*|hesita\w*|reluctant|unwilling|afraid|fail\w*|wrong|incorrect|unwise|"
    r"mistake|foolish|absurd|premature|impossible|difficult|hard|forbidden)\sto\b)"
)
VERB = re.compile(
    r"(?:choose|select|selected|pick|elijo|escolho|choisis|wähle|scelgo|выбираю|选择?|選択?)\Z", re.IGNORECASE
)
OTHERS = r"\b(?:some|others|people|many|someone|anyone|they|one)\s(?:might|may|could|would)\b"
CLAUSE = re.compile(
    r"[.;:!?]|\b(?:but|so|however|therefore|thus|hence|then|because|since|although|though)\b|(?<=[\s,])i\b(?=\s(?:choose|pick|select)\b)",
    re.IGNORECASE,
)
# "It may sound like a dog, but no."
BUT_NOT = re.compile(r"\bbut,?\s(?:[a-z]{2,20}ly,?\s)?(?:no|not)\W{0,9}\Z", re.IGNORECASE)
ASIDE = re.compile(r",[^,]{0,60},")
DENIED_ASIDE = re.compile(r"(?:\b(?:not|never)\b|n't\b),", re.IGNORECASE)
EMBEDS = re.compile(
    rf"(?:{DENIAL}\s(?:\w+\s){{0,3}}?(?:think|believe|say|feel|agree|claim|mean|accept|suppose|suggest|guess|true|case|certain|sure|"
    r"convinced|confident|sense|likely)|\b(?:doubt\w*|den(?:y|ies|ied)|disagree\w*|unlikely|untrue|false|improbable|doubtful|unsure|uncertain)"
    r"|\bno\s(?:way|reason|chance|case|scenario|argument))"
    rf"\b(?:(?!{MARK})[^,;:]){{0,60}}\Z",
    re.IGNORECASE,
)
INVERTS = re.compile(
    rf"(?:{DENIAL}|\bno\b)(?:(?!{MARK})[^,;:]){{0,40}}\b(?:would|do|did|can|could|will|should|shall|must|may|am)\s\Z",
    re.IGNORECASE,
)
AT_ONCE = re.compile(
    r"(?:\b(?:wrong|incorrect|worst|false|bad|poor|poorest|weakest|(?:least|un)\s?(?:likely|plausible|suitable|fitting|appropriate|probable|correct))|"
    r"\b(?:no|não|nao|non|ne|не|нельзя)|(?:不|不会|不會|不能|不要|不应|不應|不该|不該|别|別|没有?|沒有?))\s?\Z",
    re.IGNORECASE,
)
NOT_BOXED = re.compile(r"(?:\b(?:not|never|nor|than|except)|n't)\s[\s$(]{0,3}\Z", re.IGNORECASE)
OPINION = re.compile(r"\b(?:say|believe|think|guess)\Z", re.IGNORECASE)
# "Option C is correct", "it is option D that fits best", "the sound matches option B".
FITS = re.compile(
    rf"{MARK}\W{{1,4}}(?:is|was|must be|would be|has to be|seems|appears)\s(?:\w+\s){{0,2}}?(?:correct|right)\b(?!\s(?!because|since|as|and|given|here|so)\w)"
    rf"|{MARK}\W{{1,4}}(?:that\s|which\s)?(?:best\s)?(?:fits|matches)\b"
    rf"|\b(?:match(?:es)?|fits?|corresponds to|points to|aligns with|is consistent with|supports)\W{{1,3}}{LETTER_MARK}",
    re.IGNORECASE,
)
CONCLUDED = re.compile(
    r"\b(?:therefore|thus|hence|consequently|in conclusion|(?:i |we )?conclude|in summary|to summari[sz]e|ultimately|"
    r"(?:most|best|closest)\b[^,.;:]{0,60}?\b(?:is|are|as)|por lo tanto|donc|daher|portanto|quindi|поэтому)\b|(?:\A|[,;]\s?)so\b|因此|所以|したがって|따라서",
    re.IGNORECASE,
)
LIKELY = re.compile(
    r"\b(?:likely|probably|sounds? like|points? to(?:wards)?|must be|appears? to be|seems? to be|consistent with|"
    r"best described as|aligns with)\b",
    re.IGNORECASE,
)
COPULA = re.compile(r"\b(?:is|are|was|as|be|fits|matches|es|ist|est)\b", re.IGNORECASE)
LINKED = re.compile(r"\b(?:is|are|was|were|be|it's)\s(?:[\w-]+\s){0,3}?\W{0,3}\Z", re.IGNORECASE)
BESIDE = re.compile(
    r"\b(?:over|with|behind|under|after|before|during|without|despite|against|amid|alongside|near)\s(?:an?\s|the\s)?\W{0,3}\Z",
    re.IGNORECASE,
)
# "The worst match is B", "Avoid B": what a sentence turns down is named, and no finding.
AGAINST = re.compile(
    r"\b(?:worst|poorest|weakest|wrong|incorrect|avoid\w*|unlikely|discard\w*|dismiss\w*|omit\w*|skip\w*|nobody|no one|"
    r"refus\w+|hesita\w+|mistake|almost|nearly|considered|least\s(?:likely|plausible|probable|suitable|fitting|appropriate|convincing|"
    r"correct|favou?rite|preferred))\b|\A\W*(?:not (?:selected|chosen|picked)|rejected|excluded|eliminated|discarded|dismissed|ruled out)\b",
    re.IGNORECASE,
)
NO_CHOICE_FITS = re.compile(
    r"\bnone of (?:the|these|them|those)\b|\bno (?:option|choice|answer|pair)\b|\bnot (?:among|in|one of|listed)\b[^.]{0,30}\b(?:options|choices)\b|"
    r"\bnone\b[^.]{0,30}\b(?:fits?|match\w*|apply)\b|\A\W*none\W*\Z|\bninguna\b|\baucune\b|\bkeine der\b|以上都不",
    re.IGNORECASE,
)
UNLISTED = re.compile(
    r"\b(?:answer|option|choice)\b[^.;]{0,20}(?:\bnot|n't)\s(?:listed|given|available|provided|present|offered|included|here|there)\b",
    re.IGNORECASE,
)
ALL_FIT = re.compile(
    r"\b(?:all|both|any) of (?:the|these|them|those)\b|\ball (?:options|choices)\b", re.IGNORECASE
)
REFUSES = re.compile(
    r"\b(?:can(?:no|')t|unable to|could ?n[o']t|impossible to|difficult to|not possible to|not able to)\b[^.!?]{0,60}?\b(?:determin|"
    r"identif|answer|tell|analy[sz]|hear|listen|process|conclude|say|know|interpret|choose|pinpoint|assist|infer|calculat|deduce|be (?:determin|identif|answer|known|infer|sure|certain))|"
    r"\b(?:unknown|undetermined|indeterminate|unclear|ambiguous|not specified|not enough|insufficient|i (?:do ?n[o']t|don't) know|no answer|"
    r"not sure|i'm sorry|please (?:provide|clarify)|no (?:lo )?s[eé]|无法|不知道)\b|无法|不知道",
    re.IGNORECASE,
)
SUPPOSES = re.compile(
    rf"(?:(?!{MARK})\W)*(?:if(?! (?:i|we) (?:had|have|must|were))|suppose|assuming|were it|had (?:it|he|she|they|there|the|this|that))\b",
    re.IGNORECASE,
)
WOULD = re.compile(r"\b(?:would|could|might)\b|\w'd\b", re.IGNORECASE)
# That one has to choose, or looks at something in particular, is no condition that may fail to hold.
CONDITION = re.compile(
    r"(?<!\beven )(?<!\bas )(?<!\bknow )(?<!\btell )(?<!\bsee )(?<!\bsure )\b(?:if|provided(?=\s(?:that|it|he|she|they|there)\b)|assuming(?:\sthat)?|were(?=\s(?:it|he|she|they)\b))\s"
    r"(?!(?:i|we|you|one)\s(?:really\s|only\s|just\s)?(?:had|have|has|must|were|was|am|are|may|can|could|need\w*|consider\w*|look\w*|focus\w*|take|go|rely)\b"
    r"(?!\sheard)|(?:any|anything|so|possible|necessary|needed|forced|pressed|pushed|asked|required|at all|not|only)\b)",
    re.IGNORECASE,
)
JOINED = re.compile(r"\b(?:but|and)\s\Z", re.IGNORECASE)
RETRACTS = re.compile(r"\W*(?:wait|no|actually|correction|sorry|oops|hmm|on second thought)\b", re.IGNORECASE)
# The words of a retraction deny what came before and not what they bring: "No wait, B."
TAKEN_BACK = re.compile(
    r"(?:\W*(?:wait|actually|correction|sorry|oops|hmm|on second thought|no(?=\s*[,.:;!-]|\s(?:wait|sorry|actually)\b))\b)+",
    re.IGNORECASE,
)
DOUBTS = re.compile(
    r"\W*(?:(?:but|however|though|although|or|then again)\b\W*)?(?:perhaps|maybe|possibly|it (?:may|might|could))\b"
    r"[^.!?]{0,40}?(?:\bnot\b|n't\b)",
    re.IGNORECASE,
)
REVISES = re.compile(
    r"\b(?:wait|actually|however|but|correction|on second thought|instead|reconsider\w*|no)\b", re.IGNORECASE
)
SHARE = re.compile(r"(\d{1,3})(?:\.\d+)?\s?%")
APPOSED = re.compile(
    rf"({LETTER_MARK})[\s)\]\"'*]{{0,4}},?\s{{0,2}}[(-]?\s?"
    r"(?:which\s(?:is|means|says|stands for)|that\sis|namely|meaning|i\.?e\.?|(?:as|because|since)\s(?:it|this|that)(?:'s|\sis|\swas))"
    rf"\b,?\s(?:(?:clearly|simply|the|an?|option|choice|answer)\s){{0,3}}[\"'(]{{0,2}}({TEXT_MARK})(?!{PART})(?=\W*(?:[.,;)!]|\Z))",
    re.IGNORECASE,
)
BEFORE_OTHER = re.compile(
    rf"{TEXT_MARK}[\"')\]]{{0,2}}[\s,(]{{1,3}}or\s(?:(?:perhaps|possibly|maybe)\s)?[\"'(]{{0,2}}"
    r"(?!any|no|not|another|other|similar|simply|perhaps|possibly|maybe|rather)\w"
)
NONE = r"(?:none|neither|nothing)\b"
OR_NONE = re.compile(
    rf"{MARK}[\"')\]]{{0,2}}[\s,(]{{1,3}}or\s(?:(?:perhaps|possibly|maybe|else|rather)\s)?{NONE}|\b{NONE}[\s,(]{{1,3}}or\s(?:\w+\s){{0,2}}?{MARK}",
    re.IGNORECASE,
)
AFTER_OTHER = re.compile(
    rf"(?<!\bmore)(?<!\bone)\w[\"')\]]{{0,2}}\sor\s[\"'(]{{0,2}}(?:an?\s|the\s)?{TEXT_MARK}"
)
# "Let me go through the options one by one.", "The sources are listed below.": what follows may be the first of a list
# that was cut off.
LISTS = re.compile(
    r"\b(?:consider|go|look|walk|run|examine|evaluate|check|weigh|compare|analy[sz]e|assess|discuss)\b[^.!?]{0,40}"
    r"\b(?:options|choices|candidates|possibilities|each|in turn|one by one)\b|\b(?:below|follows|following)\W*\Z",
    re.IGNORECASE,
)
# "I would rule out the following.", "Here is the worst match.": what follows is no answer.
REJECTS = re.compile(
    r"\b(?:rul(?:e|es|ed|ing) out|exclud\w+|eliminat\w+|reject\w*|discard\w*|dismiss\w*|wrong|incorrect|except|worst|least)\b",
    re.IGNORECASE,
)
POINTS = re.compile(
    r"\A\W*(?:here|below)\b|\bfollowing\b|\b(?:below|this|these|one|choice|option)\W*\Z", re.IGNORECASE
)
# "These are incorrect.", "I can rule those out.": what is rejected is only pointed at, and may be what stands below. "The others
# are wrong." and "Engines are ruled out." say what they reject, and it is not the line below.
POINTED = (
    r"(?:(?:all|both|each|any)\s(?:of\s)?)?(?:(?:these|those|this|that|the)\s(?:ones?|options?|choices?|answers?|candidates?)"
    r"|these|those|they|them|this|that|it)"
)
DISOWNS = re.compile(
    rf"\W*(?:\w+,?\s)?(?:(?:{POINTED}\s(?:\w+\s){{1,3}}?)?(?:wrong|incorrect|false|implausible|impossible)"
    rf"|{POINTED}\s(?:\w+\s){{1,3}}?(?:ruled out|excluded|eliminated|rejected|discarded|dismissed)"
    rf"|{POINTED}\s(?:\w+n['’]t|\w+\snot|cannot|never)\s(?:\w+\s)?(?:fit|match|apply|work)"
    rf"|(?:\w+\s){{0,3}}?(?:(?:rule|ruled)\s{POINTED}\sout|(?:rule out|exclude|eliminate|reject|discard|dismiss)\s{POINTED}))\W*",
    re.IGNORECASE,
)
