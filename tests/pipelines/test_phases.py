"""What the journal of a run says of its stages."""

from pipelines.lookup import Tally
from pipelines.phases import Journal, tell_left_out


def test_a_stage_fails_by_its_share_of_the_rows_it_could_try():
    # m1: 3 of 10 - 4 = 6 rows failed, a share of 0.5: allowed at 0.5, too many at 0.49.
    journal = Journal({"m1": Tally(rows=10, unusable=4, failed=3), "m2": Tally(rows=10, failed=1)})
    assert journal.failing(0.5) == []
    assert journal.failing(0.49) == ["m1 failed on 3 of 6 usable rows"]
    assert journal.failing(0.0) == ["m1 failed on 3 of 6 usable rows", "m2 failed on 1 of 10 usable rows"]


def test_rows_that_the_spend_limit_left_out_are_counted_and_no_failures(capsys):
    # 9 of 12 rows were not asked: 1 of the 3 others failed, a share of a third.
    journal = Journal({"generate": Tally(rows=12, failed=1, left_out=9), "extract": Tally(rows=12, failed=0)})
    assert journal.failing(0.5) == []
    assert journal.failing(0.3) == ["generate failed on 1 of 3 usable rows"]
    for name, tally in journal.stages.items():
        tell_left_out(name, tally)
    assert capsys.readouterr().err.startswith(
        "note: generate: 9 of 12 rows were not asked, as the spend limit"
    )
    assert journal.stages["generate"].as_dict()["left_out"] == 9


def test_clips_that_cannot_be_heard_and_rows_nobody_tried_are_no_failing_stage():
    journal = Journal({"audio": Tally(rows=4, failed=4), "generate": Tally(rows=4, unusable=4)})
    assert journal.failing(0.0) == []


def test_the_work_of_two_parts_of_a_stage_adds_up():
    one = Tally(rows=2, computed=2, seconds=0.5, usage={"cost": 1.0}, encoded={"clips": 1})
    other = Tally(rows=1, failed=1, usage={"audio_seconds": 3.0}, encoded={"clips": 2, "texts": 4})
    assert one + other == Tally(
        rows=3,
        computed=2,
        failed=1,
        seconds=0.5,
        usage={"cost": 1.0, "audio_seconds": 3.0},
        encoded={"clips": 3, "texts": 4},
    )
