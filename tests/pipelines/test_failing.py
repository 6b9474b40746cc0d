"""When a run has failed, by hand-counted shares."""

import pyarrow as pa

from pipelines.failing import failing, told, unheard
from pipelines.lookup import Tally
from pipelines.phases import Journal


def rows(**errors: tuple[str | None, str | None]) -> pa.Table:
    columns = {
        "item_error": [item for item, _ in errors.values()],
        "audio_error": [audio for _, audio in errors.values()],
    }
    return pa.table(
        {"item_id": list(errors)} | {name: pa.array(cells, pa.string()) for name, cells in columns.items()}
    )


FINE = (None, None)


def test_items_that_cannot_be_used_count_against_the_limit_by_reason():
    # 3 of 4 items, a share of 0.75.
    some = rows(
        a=FINE, b=(None, "missing_file: b.wav"), c=("empty_choice: 2", None), d=(None, "missing_file: d.wav")
    )
    expected = (
        "3 of 4 items have a fault or a clip that cannot be heard: missing_file 2, empty_choice 1; the first: "
        "missing_file: b.wav"
    )
    assert failing(0.7, Journal(), some) == [expected]
    assert failing(0.75, Journal(), some) == failing(None, Journal(), some) == []


def test_items_are_counted_once_however_many_models_answered_them():
    both = pa.concat_tables([rows(a=FINE, b=(None, "missing_file: b"))] * 2)
    assert failing(0.4, Journal(), both)[0].startswith("1 of 2 items")


def test_without_a_limit_half_of_a_stage_and_all_items_but_one_may_fail():
    some = {f"q{n}": (None, "missing_file: x") for n in range(9)} | {"q9": FINE}
    assert failing(None, Journal({"m1": Tally(rows=2, failed=1)}), rows(**some)) == []
    assert failing(None, Journal({"m1": Tally(rows=2, failed=2)}), rows(**some)) == [
        "m1 failed on 2 of 2 usable rows"
    ]
    assert failing(None, Journal(), rows(a=some["q0"]))[0].startswith("1 of 1 items")
    assert failing(1.0, Journal(), rows(a=some["q0"])) == failing(0.0, Journal(), rows()) == []
    assert "not all of the items" in told(None) and told(0.25) == "max_failure_rate=0.25"


def test_a_response_needs_no_clip_unless_a_limit_says_so():
    deaf = rows(a=(None, "missing_file: a"), b=(None, "missing_file: b"), c=FINE)
    answered, silent = (
        deaf.append_column("response", pa.array([text] * 3, pa.string())) for text in ("B", None)
    )
    assert failing(None, Journal(), answered.slice(0, 2)) == []
    assert failing(None, Journal(), silent.slice(0, 2))[0].startswith("2 of 2 items")
    assert failing(0.5, Journal(), answered)[0].startswith("2 of 3 items")
    assert unheard(answered) == (
        "2 of 3 items cannot be heard, so they have no M1 and no ARIA: missing_file 2; the first: missing_file: a"
    )
    assert unheard(answered.slice(1)) is None, "half of them"
