"""What the answers' end sees, over several places where they arrive."""

import time
from pathlib import Path

from bench.peers.functions import amount_in, position_of
from bench.peers.probe import Probe, seen_in


def _probe(directory: Path, mark: int) -> Probe:
    return Probe(str(directory), mark, position_of, amount_in)


def test_probes_are_added_up_and_the_last_one_at_the_mark_starts_the_clock(tmp_path: Path) -> None:
    one, other = _probe(tmp_path, 10), _probe(tmp_path, 10)
    one.see_all([("a", 9, 1), ("a", 10, 2)])
    before = time.perf_counter()
    other.see_all([("b", 12, 4)])
    other.see_all([("b", 13, 8)])
    after = time.perf_counter()
    for probe in (one, other):
        probe.write()
    seen = seen_in(str(tmp_path))
    assert (seen["outputs"], seen["checksum"]) == (4, 15)
    assert 0 < seen["seconds"] <= after - before


def test_one_by_one_is_the_same_as_many_at_once(tmp_path: Path) -> None:
    answers = [("a", number, number) for number in range(1000)]
    directories = [tmp_path / "one", tmp_path / "many"]
    for directory in directories:
        directory.mkdir()
    single, many = (_probe(directory, 500) for directory in directories)
    for answer in answers:
        single.see(answer)
    many.see_all(answers)
    many.see_all([])
    single.write()
    many.write()
    one, other = (seen_in(str(directory)) for directory in directories)
    assert one["checksum"] == other["checksum"] == 499_500
    assert one["seconds"] > 0
    assert other["seconds"] is not None


def test_without_an_answer_behind_the_mark_there_is_no_time(tmp_path: Path) -> None:
    probe = _probe(tmp_path, 10)
    probe.see_all([("a", 9, 1)])
    probe.write()
    assert seen_in(str(tmp_path))["seconds"] is None
