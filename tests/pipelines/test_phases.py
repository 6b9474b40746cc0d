"""What the journal of a run says of its stages."""

from pipelines.lookup import Tally
from pipelines.phases import Journal


def test_a_stage_fails_by_its_share_of_the_rows_it_could_try():
    # m1: 3 of 10 - 4 = 6 rows failed, a share of 0.5: allowed at 0.5, too many at 0.49.
    journal = Journal({"m1": Tally(rows=10, unusable=4, failed=3), "m2": Tally(rows=10, failed=1)})
    assert journal.failing(0.5) == []
    assert journal.failing(0.49) == ["m1 failed on 3 of 6 usable rows"]
    assert journal.failing(0.0) == ["m1 failed on 3 of 6 usable rows", "m2 failed on 1 of 10 usable rows"]


def test_clips_that_cannot_be_heard_and_rows_nobody_tried_are_no_failing_stage():
    journal = Journal({"audio": Tally(rows=4, failed=4), "generate": Tally(rows=4, unusable=4)})
    assert journal.failing(0.0) == []
