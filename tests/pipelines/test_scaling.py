"""The bound on a phase by hand, its limits, and the command that prints it."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.base import Resources
from pipelines import simulate
from pipelines.config import ConfigError
from pipelines.scaling import BLOCKS, LOOK_UP, START, Driver, bottleneck, phase, times
from tests.bench.scaling import Turn, by_clock, by_processor
from tests.pipelines.cli import composed

FREE = Driver(row=0.0, block=0.0, start=0.0)


def test_the_parts_of_a_phase_by_hand():
    stages = {"m3": Resources(actors=2, batch_size=10), "m6": Resources(actors=1, batch_size=100)}
    one = phase("score", 100, stages, {"m3": 4.0, "m6": 20.0}, Driver(row=0.01, block=0.5, start=7.0))
    # blocks of min(10, max(8, ceil(100 / 24) = 5)) = 8 rows: 13 of them
    # m3: ceil(13 / 2) * 8 / 4 = 14 s; m6: 13 * 8 / 20 = 5.2 s; commit: 0.5 * 13 * 2 = 13 s, less than m3
    assert dict(one.work) == pytest.approx({"m3": 14.0, "m6": 5.2})
    # 7 + 0.01 * 100 + 14 + the fill of m6, 8 / 20 = 0.4
    assert one.seconds == pytest.approx(22.4) and one.bottleneck == "m3"
    # m3: 100 / 4 = 25 s of work in 2 * 22.4 s; m6: 100 / 20 = 5 in 22.4
    assert dict(one.use) == pytest.approx({"m3": 25 / 44.8, "m6": 5 / 22.4})


def test_a_driver_that_cannot_keep_up_is_the_bottleneck_and_more_cards_do_not_help():
    stages, rates = {"m1": Resources(actors=4, batch_size=8)}, {"m1": 10.0}
    driver = Driver(row=0.0, block=1.0, start=0.0)
    few, many = (phase("score", 4000, {"m1": times(stages["m1"], boxes)}, rates, driver) for boxes in (1, 64))
    # 500 blocks of 8: 125 rounds of 0.8 s = 100 s of work, 500 s of the driver, whatever the number of actors
    assert few.seconds == many.seconds == pytest.approx(500.0) and few.bottleneck == BLOCKS


def test_what_no_worker_shares_bounds_the_gain():
    """Amdahl: 1000 rows, 0.001 s each alone and 0.1 s each in a worker; 1 + 100 s with one worker, 1 + 0.8 s with 125."""
    driver = Driver(row=0.001, block=0.0, start=0.0)
    one, all_of_them = (
        phase("score", 1000, {"m1": Resources(actors=n, batch_size=8)}, {"m1": 10.0}, driver)
        for n in (1, 125)
    )
    assert (one.seconds, all_of_them.seconds) == pytest.approx((101.0, 1.8))
    assert all_of_them.parts[LOOK_UP] == pytest.approx(1.0) and all_of_them.bottleneck == LOOK_UP
    assert bottleneck([one, all_of_them]) == ("m1", pytest.approx(100.8 / 102.8))


def test_nothing_to_do_takes_no_time():
    one = phase("score", 0, {"m1": Resources()}, {"m1": 1.0}, Driver(1.0, 1.0, 1.0))
    assert (one.seconds, one.bottleneck) == (0.0, START)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 64), st.integers(1, 600), st.floats(0.1, 1000))
def test_no_stage_works_faster_than_all_its_actors(rows, actors, most, rate):
    one = phase("score", rows, {"m1": Resources(actors=actors, batch_size=most)}, {"m1": rate}, FREE)
    assert one.seconds >= rows / (rate * actors) * (1 - 1e-9)
    assert 0 < one.use["m1"] <= 1 + 1e-9


def test_two_actors_for_one_are_two_times_by_the_model():
    one, two = (phase("score", 186, {"m5": Resources(actors=n)}, {"m5": 10.0}, FREE).seconds for n in (1, 2))
    # blocks of 16 rows: 12 * 16 / 10 = 19.2 s; of 8: 24 blocks, 12 each, 9.6 s
    assert (one, two) == pytest.approx((19.2, 9.6))


def turn(actors, work, busy, cpu):
    return Turn(actors, 100, start=1.0, work=work, busy=busy, cpu=cpu, others=0.0)


def test_the_ratios_of_the_scaling_bench():
    turns = [
        turn(1, 20.0, 1.0, 10.0),
        turn(2, 12.5, 0.9, 12.0),
        turn(1, 30.0, 1.0, 10.0),
        turn(2, 40.0, 0.9, 12.0),
    ]
    assert by_clock(turns) == pytest.approx(20.0 / 12.5)  # the fastest of each
    assert by_processor(turns) == pytest.approx(2 * 0.9 / 1.0 * 10.0 / 12.0)


def record(folder, **rates):
    folder.mkdir()
    stages = {stage: {"rows_per_second": rates.get(stage, 10.0)} for stage in simulate.STAGES}
    (folder / "run.json").write_text(json.dumps({"config": {"cluster": {"name": "local"}}, "stages": stages}))
    return folder


def test_the_command_names_the_bottleneck_and_marks_rates_without_a_card(tmp_path, capsys):
    run = record(tmp_path / "run", m3=0.01)
    figures = tmp_path / "figures.json"
    overrides = [
        f"run={run}",
        f"json={figures}",
        "gpus=[4,8]",
        "+rates.m1=5",
        "driver.start=0",
        "driver.block=0",
    ]
    simulate.main(composed(*overrides, pipeline="simulate"))
    said = capsys.readouterr().out
    (m1, m2, m3, m6) = (
        next(line for line in said.splitlines() if line.split()[:1] == [stage])
        for stage in ("m1", "m2", "m3", "m6")
    )
    # given, so no mark; measured without a card; 2 and 4 actors of 0.01; no card wanted
    assert m1.split() == ["m1", "5", "10", "20"] and m2.split()[1] == "10*"
    assert m3.split() == ["m3", "0.01*", "0.02", "0.04"] and m6.split()[1] == "10"
    assert "m3" in next(line for line in said.splitlines() if "9 models x 2000 items" in line)
    found = json.loads(figures.read_text())
    slow, fast = (sum(one["seconds"] for one in found[size]["9 models x 2000 items"]) for size in ("4", "8"))
    assert slow / fast == pytest.approx(2.0, rel=0.02)


def test_the_newest_run_that_measured_all_is_taken(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    for age, (name, m3) in enumerate((("found_all", None), ("measured", 2.0), ("older", 3.0))):
        path = record(tmp_path / "runs" / name, m3=m3) / "run.json"
        os.utime(path, (1e9 - age, 1e9 - age))
    simulate.main(composed("gpus=[4]", pipeline="simulate"))
    assert "rates of runs/measured;" in capsys.readouterr().out
    for name in ("measured", "older"):
        (tmp_path / "runs" / name / "run.json").unlink()
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "runs" / "other" / "run.json").write_text("{}")
    with pytest.raises(ValueError, match=r"none of the 2 runs under runs/ computed every stage"):
        simulate.main(composed("gpus=[4]", pipeline="simulate"))


def test_a_rate_that_is_missing_or_of_no_stage_is_named(tmp_path):
    run = record(tmp_path / "run", m3=None)
    with pytest.raises(ValueError, match=r"no rows per second of m3.*\+rates\.m3"):
        simulate.main(composed(f"run={run}", pipeline="simulate"))
    with pytest.raises(ConfigError, match=r"rates\.m7"):
        simulate.main(composed(f"run={run}", "+rates.m7=1", pipeline="simulate"))


@pytest.mark.parametrize("key", ["gpus=[]", "gpus=[0]", "items=0", "models=0"])
def test_nothing_to_simulate_is_said(key):
    with pytest.raises(ConfigError, match="nothing to simulate"):
        simulate.main(composed(key, pipeline="simulate"))
