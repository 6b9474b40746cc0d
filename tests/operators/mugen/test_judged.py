"""What a judge decided comes back as it was, by what was asked; what it lost does not."""

from operators.answers import Extraction
from operators.fingerprint import fingerprint
from operators.judges.option_judge import OptionJudge
from operators.mugen import judged
from operators.mugen.options import Asked, RuleReader
from operators.store import Store

JUDGE = OptionJudge(chat="any")


def test_decisions_are_found_by_question_options_and_response_and_failures_are_not_kept(tmp_path):
    asked = [Asked("q", 5, text) for text in ("first", None, "both", "garbled")]
    found = [
        Extraction(0, "judge", None),
        Extraction(None, None, "no_response"),
        Extraction(None, None, "judged_several"),
        Extraction(None, None, "judge_unparsed"),
    ]
    shelf = Store(str(tmp_path)).scores(judged.READINGS, JUDGE)
    judged.keep(shelf, asked, found)
    others = [Asked("other", 5, "first"), Asked("q", 4, "first")]
    assert judged.find(shelf, [*asked, *others]) == [*found[:3], None, None, None]
    assert judged.find(shelf, []) == []


def test_a_judge_is_known_by_its_fingerprint_and_rules_are_no_judge():
    assert (judged.judge_of(JUDGE), judged.judge_of(RuleReader())) == (fingerprint(JUDGE), None)
