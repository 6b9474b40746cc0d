"""The words by which statements are read: what denies, what lists, what turns, what only fills. Parsing stands in answer_clauses."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATES = _words(
    "not no never neither nor cannot except excluding exclude excluded excludes eliminate eliminated "
    "eliminates eliminating reject rejected rejects rejecting rule ruled rules ruling unlike than "
    "instead besides other others nicht kein keine pas non não niet nie ni не нет 不是 不 wrong incorrect "
    "avoid avoids avoiding ignore ignored ignoring discard discarded dismiss dismissed doubt doubts doubtful hardly scarcely barely without false unlikely less implausible irrelevant inconsistent absent impossible missing unsupported ❌ ✗ ✘ 🚫 "
    "worst poorest weakest lack lacks lacking absence opposite refuse refuses refusing decline declines declining abstain "
    "abstains abstaining abstained refused declined skipped pass seldom rarely ليس ليست لا לא नहीं değil bukan tidak không inte ikke"
)
# These deny what stands before; what follows only in "wrong: B" and "the wrong option is B".
DENIES_BACKWARD = _words(
    "wrong incorrect false implausible irrelevant inconsistent absent impossible missing unsupported ❌ ✗ ✘ 🚫"
)
OFFERED = _words(": option options choice choices answer answers match guess candidate selection pick one")
FITTING = _words("it right correct true likely best possible")
# These deny what follows and leave alone what stands before: "dog without rain".
NEGATES_FORWARD_ONLY = _words(
    "without doubt doubts instead than except excluding besides unlike refuse refuses refusing decline declines declining "
    "abstain abstains abstaining abstained refused declined skipped pass lack lacks lacking opposite"
)
CERTAIN = _words("doubt question")
DENIES_WITH = {"far": ["from"], "nothing": ["like"], "instead": ["of"], "pass": ["on"]}
# "A, no, B" takes A back; it does not deny B.
TAKES_BACK = _words(", ; : wait sorry actually rather")
ARTICLES = _words("the a an")
AUXILIARIES = _words(
    "is are was were do does did can could would will be been seem seems also both all options option "
    "therefore choices"
)
# These, and words in -ly, may stand between a choice and its denial: "A is in fact not it".
ADVERBS = _words(
    "most just quite rather thus indeed still in fact of course at all by far very so now again maybe perhaps anything"
)
LIST_WORDS = _words("and or nor / \" ' ( ) [ ] , a an the option either y o und oder et ou")
RESETS = _words(
    "but however so then answer ; : . because since although though hence therefore sondern sino mais"
)
ENDS = _words(
    "because since as while whereas although though given due which considering where porque weil parce car"
)
FILLER = _words(
    "is are be it it's its that this the an a most likely probably clearly definitely option choice "
    "letter answer correct final would should must will therefore text mathrm textbf i think not but "
    "rather than either neither nor or and of indeed simply s to my number one es la el le est ist "
    "lautet die der é o il è adalah là jest är er on hij opción opcion correcta correta corretta "
    "correcte exacta certa bonne richtig richtige"
)
OPEN_TURNS = _words("or perhaps possibly maybe alternatively")
TURNS = OPEN_TURNS | _words("but however though although yet wait actually no sorry correction oops hmm mean")
SUPPOSED = _words("could may might seems seem appears appear perhaps possibly maybe")
# Small words between a turn and the mark that it brings: "but it is more likely B", "though I would lean towards B".
LIGHT = (
    FILLER
    | LIST_WORDS
    | AUXILIARIES
    | SUPPOSED
    | TURNS
    | _words(
        "more likely also really rather instead lean leaning towards toward can i'd i'll we go going with say looks sounds "
        "like closer better no sorry correction even possible plausible guess believe just now"
    )
)
CLOSERS = _words("instead rather better more")
COPULAS = _words("is be es ist est")
BLOCKS = _words(
    "based supported derived given by from about due question requires depends provide using contains "
    "includes listed among"
)
