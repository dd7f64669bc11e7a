"""How much each of several sources reads, from how they came along in event time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.driver.source_pace import Advance, SourcePace, shares
from penstock.graph.location import user_location
from penstock.graph.partitioning import ByKey, Partitioning, Rebalance
from penstock.plan.translate import vertex_uid
from penstock.runtime.epoch import Acknowledgement
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.operators.timestamps import AssignTime
from penstock.runtime.physical import (
    JobSettings,
    Output,
    PhysicalEdge,
    PhysicalOperator,
    PhysicalPlan,
    Vertex,
)
from penstock.runtime.watermarks import MAX_TIMESTAMP, MIN_TIMESTAMP
from penstock.testing import ScriptedSource

BY_KEY = ByKey(str)
SPARSE, DENSE, THIRD = 0, 1, 2
NAMES = ["sparse", "dense_1 (all)", "third"]
"""Not all of them are plain, as uids in names of files are."""


def plan_of(
    sources: int, *edges: tuple[int, int, Partitioning], **behind: dict[str, Any]
) -> PhysicalPlan:
    """Sources first, then whatever edges lead to; all of parallelism 2. A source may be followed by
    other operators in its chain: its edges are those of the first one then."""
    settings = JobSettings("job", "job", "run", "", "", "hashmap", 1, 1, 1.0, False)
    vertices = []
    for index in range(max([sources - 1, *(target for _, target, _ in edges)]) + 1):
        uid = NAMES[index] if index < sources else f"operator {index}"
        head = PythonSource(ScriptedSource([])) if index < sources else None
        outputs = tuple(
            Output(edge=number) for number, (source, _, _) in enumerate(edges) if source == index
        )
        chain = [
            PhysicalOperator(name, name, user_location(), operator, None, (), index)
            for name, operator in [(uid, head), *behind.get(uid, {}).items()]
        ]
        chain[0] = replace(chain[0], outputs=outputs)
        vertices.append(Vertex(index, vertex_uid(uid), uid, 0, 2, 128, tuple(chain), (), ()))
    made = tuple(
        PhysicalEdge(index, source, target, partitioning, 0, user_location(), "", stamped=True)
        for index, (source, target, partitioning) in enumerate(edges)
    )
    return PhysicalPlan(settings, tuple(vertices), made)


def told(
    source: int, subtask: int, watermark: int, records: int, behind: bool = True
) -> Acknowledgement:
    uid = NAMES[source]
    return Acknowledgement(
        source,
        subtask,
        "token",
        watermarks={uid: watermark, "last": -5},
        records_in={vertex_uid(uid): records},
        cut_off=behind,
    )


def read(source: int, watermark: int, records: int, behind: bool = True) -> list[Acknowledgement]:
    """What its two subtasks tell of an epoch: the second one has come a little further."""
    return [told(source, n, watermark + n, records, behind) for n in (0, 1)]


JOIN = plan_of(2, (SPARSE, 2, BY_KEY), (DENSE, 2, BY_KEY))


def paced(plan: PhysicalPlan = JOIN, behind: bool = True) -> SourcePace:
    """100 records of one source are 1,000 ms, of the other 100."""
    pace = SourcePace(plan)
    for time in (1, 2):
        dense = read(DENSE, time * 100, 100, behind)
        pace.learn([*read(SPARSE, time * 1000, 100), *dense])
    return pace


advances = st.builds(
    Advance, watermark=st.integers(0, 10**9), millis_per_record=st.floats(0.001, 1000)
)


@given(
    st.dictionaries(st.text(max_size=3), advances, min_size=2, max_size=4),
    st.integers(100, 10**6),
)
def test_nobody_reads_further_than_the_slowest_comes(found, limit):
    told = shares(found, limit)
    assert told.keys() == found.keys()
    assert max(told.values()) == limit

    def after(uid: str, read: int) -> float:
        return found[uid].watermark + read * found[uid].millis_per_record

    reached = min(after(uid, limit) for uid in found)
    for uid, records in told.items():
        assert limit // 32 <= records <= limit
        beyond = after(uid, records) - reached
        assert records == limit // 32 or beyond <= found[uid].millis_per_record


def test_one_alone_reads_what_there_is():
    assert shares({"a": Advance(5, 1.0)}, 100) == {}


def test_the_sparse_one_waits_for_the_dense_one():
    """It is at 2,000 and the other at 200, which 100 records bring to 300: as little as may be.
    When the other is there, each reads as many as bring it as far."""
    pace = paced()
    assert pace.limits(640) == {"sparse": 20}
    pace.learn([*read(SPARSE, 2100, 10), *read(DENSE, 2000, 1800)])
    assert pace.limits(1000) == {"sparse": 90}


def test_before_two_epochs_nothing_is_known():
    pace = SourcePace(JOIN)
    pace.learn([*read(SPARSE, 1000, 100), *read(DENSE, 100, 100)])
    assert pace.limits(100) == {}


def test_who_keeps_up_keeps_nobody_waiting():
    assert paced(behind=False).limits(100) == {}
    pace = paced()
    pace.learn([*read(SPARSE, 3000, 100), *read(DENSE, MAX_TIMESTAMP, 100)])
    assert pace.limits(100) == {}


def test_time_may_stand_still():
    """As it does for many epochs, if a source tells it in days. When it moves, all counts that was
    read since it last did."""
    pace = paced()
    for _ in range(3):
        pace.learn([*read(SPARSE, 2000, 3), *read(DENSE, 200, 100)])
        assert pace.limits(100) == {"sparse": 3}
    pace.learn([*read(SPARSE, 2000, 3), *read(DENSE, 2100, 80)])
    # 380 records were 1,900 ms, so that 100 bring the dense one to 2,600.
    assert pace.limits(100) == {"sparse": 60}


def test_before_time_has_moved_nothing_is_known():
    pace = SourcePace(JOIN)
    for time in (1, 2, 3):
        pace.learn([*read(SPARSE, time * 1000, 100), *read(DENSE, 7, 100)])
    assert pace.limits(100) == {}


def test_subtasks_with_nothing_to_read_do_not_count():
    pace = SourcePace(JOIN)
    for time in (1, 2):
        pace.learn(
            [
                told(SPARSE, 0, time * 1000, 100),
                told(SPARSE, 1, 5, 0, behind=False),
                told(DENSE, 0, MIN_TIMESTAMP, 0, behind=False),
                told(DENSE, 1, time * 100, 100),
            ]
        )
    assert pace.limits(100) == {"sparse": 3}


def test_the_clock_is_no_measure_of_what_was_read():
    clock = AssignTime(WatermarkStrategy.for_ingestion_time())
    edges = ((SPARSE, 2, BY_KEY), (DENSE, 2, BY_KEY))
    assert paced(plan_of(2, *edges, sparse={"last": clock})).limits(100) == {}


def test_of_a_chain_that_branches_the_time_counts_that_goes_where_they_meet():
    edges = ((SPARSE, 2, BY_KEY), (DENSE, 2, BY_KEY))
    assert paced(plan_of(2, *edges, sparse={"last": None})).limits(100) == {"sparse": 3}


def test_watermarks_of_today_and_short_steps():
    """Beside them a float would not tell one from the other."""
    now, step = 1_800_000_000_000, 1e-4
    found = shares({"a": Advance(now, step), "b": Advance(now, 2 * step)}, 1000)
    assert found == {"a": 1000, "b": 500}


def test_only_sources_that_meet_by_key_wait_for_each_other():
    to_one_sink = plan_of(2, (SPARSE, 2, Rebalance()), (DENSE, 2, Rebalance()))
    assert paced(to_one_sink).limits(100) == {}
    apart = plan_of(2, (SPARSE, 2, BY_KEY), (DENSE, 3, BY_KEY))
    assert paced(apart).limits(100) == {}
    later = plan_of(
        2, (SPARSE, 2, Rebalance()), (DENSE, 3, Rebalance()), (2, 4, BY_KEY), (3, 4, BY_KEY)
    )
    assert paced(later).limits(100) == {"sparse": 3}


def test_two_that_meet_a_third_are_one_group():
    plan = plan_of(
        3, (SPARSE, 3, BY_KEY), (DENSE, 4, BY_KEY), (THIRD, 3, BY_KEY), (THIRD, 4, BY_KEY)
    )
    assert paced(plan).limits(100) == {"sparse": 3}
