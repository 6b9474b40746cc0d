"""Pools of workers on nodes, by hand."""

from dataclasses import dataclass

import pytest

from operators.base import Resources, Stage
from pipelines.room import ResourceError, Share, check, fits, lacking, shares, shrunk

BOX = {"CPU": 8.0, "GPU": 2.0}


@dataclass(frozen=True)
class Nothing:
    reads = writes = ()
    version = 1


def stage(name, **needs):
    return Stage(name, Nothing(), Resources(**needs))


def pool(actors, cpus=1.0, gpus=0.0, name="m1"):
    return Share((stage(name),), actors, cpus, gpus)


def test_neighbours_of_one_pool_share_it_and_the_neediest_speaks():
    stages = [
        stage("m1", cpus=1, gpus=0.25, actors=2, pool="small"),
        stage("m2", cpus=2, pool="small"),
        stage("m3"),
    ]
    both, alone = shares(stages, blocks=9, nodes=[BOX])
    assert [s.name for s in both.chain] == ["m1", "m2"]
    assert (both.actors, both.cpus, both.gpus) == (2, 2, 0.25)
    assert [s.name for s in alone.chain] == ["m3"]


def test_no_more_workers_than_blocks_and_at_least_one():
    assert shares([stage("m1", actors=4)], blocks=3, nodes=[BOX])[0].actors == 3
    assert shares([stage("m1", actors=4)], blocks=0, nodes=[BOX])[0].actors == 1


def test_no_cpus_named_is_all_of_one_node():
    assert shares([stage("m1", cpus=0)], blocks=1, nodes=[{"CPU": 2.0}, {"CPU": 6.0}])[0].cpus == 6


def test_a_worker_lives_on_one_node():
    assert fits([pool(2, gpus=2)], [BOX, BOX])
    assert not fits([pool(1, gpus=3)], [BOX, BOX]), "four cards, but two per node"
    assert not fits([pool(3, gpus=2)], [BOX, BOX, {"CPU": 8.0}])


def test_small_workers_leave_room_for_large_ones():
    # Placed as they come, the small ones would each take half of a node of two cards.
    assert fits([pool(2, gpus=1), pool(1, gpus=2)], [BOX, BOX])


def test_fractions_of_a_card_add_up():
    assert fits([pool(8, cpus=0.1, gpus=0.1)] * 2 + [pool(4, gpus=0.1)], [BOX]), "16 / 10 + 4 / 10 = 2"
    assert not fits([pool(21, cpus=0.1, gpus=0.1)], [BOX])


def test_pools_shrink_until_they_fit_the_largest_first():
    left = shrunk([pool(4, gpus=0.5), pool(2, gpus=0.5)], [BOX])
    assert [share.actors for share in left] == [2, 2]
    asked = [pool(4, gpus=0.5), pool(2, gpus=0.5, name="m2")]
    assert lacking(asked, shrunk(asked, [BOX])) == ["m1: 2 workers instead of 4, as nodes are gone"]
    assert [share.actors for share in shrunk([pool(4, gpus=0.5)], [BOX])] == [4], "what fits stays"


def test_no_pool_shrinks_to_nothing_and_what_cannot_fit_is_refused():
    left = shrunk([pool(3, gpus=4)], [BOX])
    assert [share.actors for share in left] == [1]
    with pytest.raises(ResourceError, match=r"stages m1 together need 4 GPUs.* its largest node 2"):
        check(left, [BOX])


def test_a_cluster_without_nodes_is_refused():
    with pytest.raises(ResourceError, match="the cluster has 0"):
        check(shares([stage("m1")], 1, []), [])
