"""Who computes what: claims on units that several copies of a step meet."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import pytest

from operators.batching import Memo, Units
from pipelines.ledger import Account


class Desk:
    """A worker's way to an account in this process; calls come one at a time, as to an actor."""

    def __init__(self, account, worker, lock):
        self.account, self.worker, self.lock = account, worker, lock

    def claim(self, memo, keys):
        with self.lock:
            return self.account.claim(self.worker, memo, keys)

    def settle(self, memo, results, given_back):
        with self.lock:
            self.account.settle(memo, results, given_back)


def memos(n, account=None):
    """One memo in each of `n` workers, and what each worker counted."""
    account, lock, made, units = account or Account(), Lock(), [], []
    for number in range(n):
        units.append(Units(Desk(account, f"worker {number}", lock)))
        with units[-1].at_hand():
            made.append(Memo("texts"))
    return made, units


def test_a_claimed_unit_is_somebody_elses_until_it_is_settled_or_given_back():
    account = Account()
    assert account.claim("a", "m", ["x", "y"]) == ({}, ["x", "y"])
    assert account.claim("b", "m", ["x", "z"]) == ({}, ["z"])
    assert account.claim("b", "another memo", ["x"]) == ({}, ["x"])
    account.settle("m", {"x": 1}, ["y"])
    assert account.claim("b", "m", ["x", "y"]) == ({"x": 1}, ["y"])


def test_a_claim_whose_answer_was_lost_is_granted_to_the_same_worker_again():
    account = Account()
    assert account.claim("a", "m", ["x"]) == account.claim("a", "m", ["x"]) == ({}, ["x"])
    assert account.claim("b", "m", ["x"]) == ({}, [])


def test_a_claim_that_nobody_comes_back_for_is_free_after_a_while():
    patient, hasty = Account(abandoned_after=3600), Account(abandoned_after=0)
    for account in (patient, hasty):
        account.claim("its node is gone", "m", ["x"])
    assert patient.claim("b", "m", ["x"]) == ({}, [])
    assert hasty.claim("b", "m", ["x"]) == ({}, ["x"])
    hasty.settle("m", {"x": 1}, [])
    hasty.settle("m", {"x": 1}, [])
    assert hasty.claim("c", "m", ["x"]) == ({"x": 1}, []), "a slow worker that settles too changes nothing"


def test_the_oldest_results_are_forgotten_and_free_to_be_computed_again():
    account = Account(size=2)
    account.claim("a", "m", ["x", "y", "z"])
    account.settle("m", {"x": 1, "y": 2, "z": 3}, [])
    assert account.claim("b", "m", ["x", "y", "z"]) == ({"y": 2, "z": 3}, ["x"])


def test_a_result_is_kept_apart_from_the_message_that_brought_it():
    account, message = Account(), np.arange(6.0).reshape(2, 3)
    account.settle("m", {"x": (message[0], False)}, [])
    message[:] = 7
    found, _ = account.claim("b", "m", ["x"])
    assert found["x"][0].base is None and found["x"][0].tolist() == [0, 1, 2]


def test_claims_of_a_dead_worker_are_free_again_and_its_results_stay():
    account = Account()
    account.claim("a", "m", ["x", "y"])
    account.claim("b", "m", ["z"])
    account.settle("m", {"x": 1}, [])
    account.drop("a")
    assert account.claim("c", "m", ["x", "y", "z"]) == ({"x": 1}, ["y"])


def test_workers_at_the_same_time_compute_each_unit_once():
    made, units = memos(4)
    seen = Counter()

    def square(keys):
        seen.update(keys)
        return [key * key for key in keys]

    def work(number):
        return [made[number].get(range(start, start + 40), square) for start in range(0, 400, 10)]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    assert results == [[[k * k for k in range(s, s + 40)] for s in range(0, 400, 10)]] * 4
    assert seen == dict.fromkeys(range(430), 1)
    assert sum(one.encoded["texts"] for one in units) == 430


def test_an_error_and_a_unit_without_result_are_given_back():
    (first, second), units = memos(2)

    def fails(keys):
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError):
        first.get(["a", "b"], fails)
    assert first.get(["a", "b"], lambda keys: [None, "B"]) == [None, "B"]
    assert second.get(["a", "b"], lambda keys: [key.upper() for key in keys]) == ["A", "B"]
    assert [one.report() for one in units] == [{"texts": 1}, {"texts": 1}]
    assert [one.report() for one in units] == [{"texts": 0}, {"texts": 0}]
