"""What the journal of a run says of its stages."""

import pyarrow as pa

from operators.spool import portions
from operators.store import Store
from pipelines.blocks import cut
from pipelines.commit import Committer
from pipelines.config import Cluster
from pipelines.lookup import Tally
from pipelines.phases import Journal, generate, generate_together, tell_left_out
from pipelines.pool import Pool
from tests.operators.lalms.clips import tone
from tests.pipelines.test_pool import LOADED, Loud


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


def in_this_process(stages, table, title, whole, commits, mark):
    """What pipelines.execution.run does, without Ray: one worker that stores what it has, block by block."""
    pool = Pool(stages, None, Committer(commits, mark, False))
    yield from (pool(block) for some in portions(table) for block in cut(some, 3, whole))


def test_models_asked_together_give_and_store_what_each_does_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.lookup.run", in_this_process)
    models, broken = {"bare": Loud(prompt=None), "free": Loud(), "again": Loud()}, "broken: it is"
    clips = [tone(tmp_path, f"c{n}", 0.1, pitch=300 + n) for n in range(4)]
    rows = {
        name: pa.table(
            {
                "item_id": [f"q{n}" for n in range(4)],
                "benchmark": ["b"] * 4,
                "trial": [0] * 4,
                "question": [f"{name if name == 'again' else ''} {n}?" for n in range(4)],
                "choices": [["a", "b"]] * 4,
                "audio_uris": [[path] for path, _ in clips],
                "audio_hashes": [[digest] for _, digest in clips],
                "audio_seconds": [[0.1]] * 4,
                "item_error": pa.array([None, broken if name == "free" else None, None, None], pa.string()),
                "audio_error": pa.nulls(4, pa.string()),
            }
        )
        for name in models
    }
    stores = Store(str(tmp_path / "together")), Store(str(tmp_path / "alone"))
    told, cluster = (Journal(), Journal()), Cluster()
    asked = {name: (models[name], rows[name]) for name in models}
    LOADED.clear()
    together = generate_together(asked, "m", stores[0], cluster, told[0])
    assert LOADED == [None], "loaded once for all"
    alone = {name: generate(rows[name], "m", models[name], stores[1], cluster, told[1]) for name in models}
    assert together == alone and len(LOADED) == 4
    assert together["free"]["response_error"].to_pylist()[1] == broken
    for model in models.values():
        first, second = (store.responses(model).read().sort_by("key") for store in stores)
        assert first == second and first.num_rows in (4, 7)
    one, other = (journal.stages["generate"] for journal in told)
    assert (one.rows, one.unusable, one.computed, one.failed) == (12, 1, 11, 0)
    assert (one.rows, one.unusable, one.computed) == (other.rows, other.unusable, other.computed)
    # Asked again, nothing is computed and nothing loaded.
    assert generate_together(asked, "m", stores[0], cluster, told[0]) == together and len(LOADED) == 4
