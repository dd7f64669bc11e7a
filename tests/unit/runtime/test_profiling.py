"""Samples of tasks: whose they are, how long, how many; and the counts of records beside them."""

from __future__ import annotations

import ast
import gc
import random
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

import pytest

import penstock
from penstock.graph.location import Location
from penstock.graph.partitioning import ByKey
from penstock.runtime import loops
from penstock.runtime.attribution import Attribution
from penstock.runtime.keying import keying
from penstock.runtime.loops import before
from penstock.runtime.operators.base import OpenOperator, one_by_one
from penstock.runtime.physical import PhysicalEdge, PhysicalOperator
from penstock.runtime.profiling import frames, timer
from penstock.runtime.profiling import sampler as sampling
from penstock.runtime.profiling.counting import RecordCounts
from penstock.runtime.profiling.recorder import Recorder
from penstock.runtime.profiling.sampler import Sampler, stack_of
from penstock.runtime.profiling.samples import (
    CATCH_UP,
    DECODE,
    HANDING_OVER,
    MOST_FRAMES,
    OPERATOR,
    ROUTING,
    STATE_READ,
    STATE_WRITE,
    WAITING,
    Spot,
    TaskProfile,
)
from penstock.runtime.profiling.watching import Watching
from penstock.state.backend import KeyScope


def frame_here() -> FrameType:
    return sys._getframe(1)


class KnownCodes:
    """Owners that know functions by their code alone."""

    def __init__(self, **known: Any) -> None:
        self._known = {function.__code__: uid for uid, function in known.items()}

    def operator_in(self, held: Any, line: int | None) -> str | None:
        return None

    def exchange_in(self, held: Any, line: int | None) -> bool:
        return False

    def operator_calling(self, code: CodeType) -> str | None:
        return self._known.get(code)


def root(function: Any) -> Any:
    return one_by_one(function)([None])


def labels(spot: Spot) -> list[str]:
    return [label.partition(" (")[0] for label in spot.frames]


def sampled(function: Any, owners: KnownCodes) -> Spot:
    """What a sampler sees of a function that runs in another thread."""
    entered, leave = threading.Event(), threading.Event()

    def blocking() -> None:
        entered.set()
        leave.wait(10)

    def run() -> None:
        root(partial(function, blocking))

    thread = threading.Thread(target=run)
    thread.start()
    entered.wait(10)
    recorder = Recorder(root.__code__, lambda: [owners], lambda: (3, "head"))
    assert thread.ident is not None
    recorder.see(stack_of(thread.ident), 7)
    leave.set()
    thread.join()
    ((spot, micros),) = recorder.profile.micros.items()
    assert micros == 7
    return spot


def parse(block: Any, value: Any) -> None:
    block()


def calls_parse(block: Any, value: Any) -> None:
    parse(block, value)


def test_the_users_function_tells_its_operator() -> None:
    spot = sampled(parse, KnownCodes(map_1=parse))
    assert (spot.vertex, spot.operator, spot.kind) == (3, "map_1", OPERATOR)
    assert labels(spot)[0] == "parse"


def test_a_function_is_its_callers_if_another_operators_function_calls_it() -> None:
    spot = sampled(calls_parse, KnownCodes(map_1=parse, map_2=calls_parse))
    assert spot.operator == "map_2"
    assert labels(spot)[:2] == ["calls_parse", "parse"]


def test_a_loop_that_is_just_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    head = PhysicalOperator("map_1", "Map", Location("job.py", 1), None, None, (), 0)
    owners = [Attribution(head)]
    recorder = Recorder(root.__code__, lambda: owners, lambda: (3, "head"))
    compile_it = loops._code_of

    def seen(source: str) -> Any:
        recorder.see(stack_of(threading.get_ident()), 7)
        return compile_it(source)

    monkeypatch.setattr(loops, "_code_of", seen)
    root(repr)
    assert recorder.profile.samples == 1


def test_keys_that_are_found_for_an_operator() -> None:
    """In the loop that its records go through."""
    here = Location("job.py", 1)
    owners = [Attribution(PhysicalOperator("map_1", "Map", here, None, None, (), 0))]
    recorder = Recorder(root.__code__, lambda: owners, lambda: (3, "head"))

    def select(value: Any) -> Any:
        recorder.see(stack_of(threading.get_ident()), 7)
        return value

    by_key = ByKey(select)
    owners[0].of_edge(PhysicalEdge(0, 0, 1, by_key, 0, here, "key_by"), by_key)
    keyed = before(one_by_one(repr), keying(by_key, KeyScope()))
    root(lambda _: keyed(["a"]))

    [spot] = recorder.profile.micros
    assert (spot.operator, spot.kind) == ("head", ROUTING)
    assert "test_keys_that_are_found_for_an_operator.select" in labels(spot)


_OURS = Path(penstock.__file__).parent


def defined_in(path: Path, text: str) -> Any:
    """A function whose frames are found in that file."""
    found: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), found)
    return found["function"]


def calling(path: Path, name: str, inner: Any) -> Any:
    """A function of that file and name, which calls another one."""
    text = f"def of(inner):\n  def {name}(block):\n    inner(block)\n  return {name}\nfunction = of"
    return defined_in(path, text)(inner)


def just_block(block: Any) -> None:
    block()


_DECODE = calling(_OURS / "runtime" / "codec.py", "decode", just_block)


def seen_within(inner: Any) -> tuple[Spot, list[str]]:
    """What is seen of a function of ours that the user's function of an operator calls."""

    def of_user(block: Any, value: Any) -> None:
        inner(block)

    spot = sampled(of_user, KnownCodes(map_1=of_user))
    return spot, [label for label in labels(spot) if label.startswith("[")]


def test_records_are_decoded_for_the_head_whoever_draws_them() -> None:
    spot, kinds = seen_within(_DECODE)
    assert (spot.operator, spot.kind, kinds) == ("head", DECODE, ["[decode]"])


@pytest.mark.parametrize(("method", "kind"), [("value", STATE_READ), ("update", STATE_WRITE)])
def test_what_state_decodes_is_work_of_state(method: str, kind: str) -> None:
    spot, kinds = seen_within(calling(_OURS / "state" / "value_state.py", method, _DECODE))
    assert (spot.operator, spot.kind, kinds) == ("map_1", kind, [f"[{kind}]"])


def test_a_store_that_catches_up_is_told_from_reading() -> None:
    catching_up = calling(_OURS / "storage" / "catch_up.py", "catch_up", _DECODE)
    spot, kinds = seen_within(calling(_OURS / "state" / "value_state.py", "value", catching_up))
    assert (spot.operator, spot.kind) == ("map_1", CATCH_UP)
    assert kinds == ["[state read]", "[store catch-up]"]


def test_waiting_for_input_is_nobodys_time() -> None:
    reading = calling(Path("/x/pyspark/serializers.py"), "load_stream", just_block)
    spot, _ = seen_within(reading)
    assert (spot.operator, spot.kind) == (None, WAITING)


def test_of_a_deep_stack_the_outer_frames_are_kept() -> None:
    def deep(block: Any, value: Any, depth: int = 2 * MOST_FRAMES) -> None:
        deep(block, value, depth - 1) if depth else block()

    spot = sampled(deep, KnownCodes(map_1=deep))
    assert spot.operator == "map_1"
    assert len(spot.frames) == MOST_FRAMES


def test_a_frame_that_was_looked_at_holds_nothing_back() -> None:
    """What a function lets go of ends there and then, as it does without a profile."""

    class Thing:
        pass

    text = "def function(self, block, ref):\n  block()\n  del self\n  return ref() is None\n"
    process = defined_in(_OURS / "runtime" / "operators" / "process.py", text)
    things = [Thing()]
    ref = weakref.ref(things[0])
    ended: list[bool] = []

    def of_user(block: Any, value: Any) -> None:
        ended.append(process(things.pop(), block, ref))

    sampled(of_user, KnownCodes())
    assert ended == [True]


def test_a_task_that_is_not_asked_hands_rows_over() -> None:
    recorder = Recorder(root.__code__, list, lambda: (3, "head"))
    recorder.see([frame_here()], 5)
    recorder.see([frame_here()], 6)
    assert recorder.profile.micros == {Spot(3, None, HANDING_OVER): 11}


def test_a_profile_keeps_so_many_stacks_and_all_of_the_time() -> None:
    profile = TaskProfile()
    for number in range(10):
        profile.add(Spot(0, "a", OPERATOR, (f"f{number}",)), 1, most=4)
    assert len(profile.micros) == 5
    assert profile.micros[Spot(0, "a", OPERATOR)] == 6
    assert sum(profile.micros.values()) == 10


def test_the_stack_of_a_thread_is_whole() -> None:
    codes = [frame.f_code for frame in stack_of(threading.get_ident())]
    expected, frame = [], frame_here()
    while frame is not None:
        expected.append(frame.f_code)
        frame = frame.f_back  # type: ignore[assignment]
    assert codes[0] is stack_of.__code__
    assert codes[1:] == expected


def test_a_thread_that_has_ended_has_no_stack() -> None:
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    assert ended.ident is not None
    assert stack_of(ended.ident) == []


def test_a_sampler_looks_while_it_shall_and_leaves_nothing_behind() -> None:
    before = sys.getswitchinterval()
    sampler = Sampler()
    recorder = Recorder(root.__code__, list, lambda: (0, None))

    def work(value: Any) -> None:
        deadline = time.monotonic() + 10
        while recorder.profile.samples < 5 and time.monotonic() < deadline:
            sum(range(1000))

    sampler.watch(recorder, 0.001)
    root(work)
    sampler.unwatch(recorder)
    samples = recorder.profile.samples
    assert samples >= 5
    assert all("work" in labels(spot)[0] for spot in recorder.profile.micros if spot.frames)
    deadline = time.monotonic() + 10
    while sys.getswitchinterval() != before and time.monotonic() < deadline:
        time.sleep(0.005)
    assert sys.getswitchinterval() == before
    assert gc.isenabled()
    assert recorder.profile.samples == samples


def test_looks_begin_anywhere_and_count_for_the_time_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that is busy wakes the thread late: 30 ms after the last look, instead of 10."""
    now = [0.0]
    slept: list[float] = []
    seen: list[int] = []
    sampler = Sampler()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += 0.03
        if len(slept) == 4:
            sampler.unwatch(recorder)

    class Looking(Recorder):
        def see(self, stack: Any, micros: int) -> None:
            seen.append(micros)

    recorder = Looking(root.__code__, list, lambda: (0, None))
    monkeypatch.setattr(sampling, "time", SimpleNamespace(sleep=sleep, perf_counter=lambda: now[0]))
    monkeypatch.setattr(sampling, "random", SimpleNamespace(random=lambda: 0.25))
    sampler._running = True  # it is this thread that looks
    sampler.watch(recorder, 0.01)
    sampler._sample()
    assert slept == pytest.approx([0.0025, 0.01, 0.01, 0.01])
    assert seen == pytest.approx([10_000, 30_000, 30_000], abs=1)


@pytest.fixture
def free_timer() -> Iterator[None]:
    """Tests have a timeout by the same signal."""
    left = signal.setitimer(signal.ITIMER_REAL, 0)
    handler = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    yield
    timer._taken = False
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, *left)


def gives_the_lock_away() -> float:
    began = time.perf_counter()
    time.sleep(0)
    return time.perf_counter() - began


def keeps_the_lock() -> float:
    began = time.perf_counter()
    sum(range(random.randrange(2000, 10_000)))  # one call of C; not in step with the timer
    return time.perf_counter() - began


@pytest.mark.usefixtures("free_timer")
def test_a_place_is_found_as_often_as_the_task_is_there() -> None:
    """Also one that lets other threads run: a sampler in a thread finds a task nowhere else. On a
    busy machine a look may count for many milliseconds, so shares are only about right."""
    recorder = Recorder(test_a_place_is_found_as_often_as_the_task_is_there.__code__, list, list)
    places: dict[str, int] = {}

    def see(stack: list[FrameType], micros: int) -> None:
        name = stack[0].f_code.co_name
        places[name] = places.get(name, 0) + micros

    recorder.see = see  # type: ignore[assignment, method-assign]
    watching = Watching(recorder, 0.001)
    given = kept = 0.0
    until = time.perf_counter() + 1.5
    while time.perf_counter() < until:
        given += gives_the_lock_away()
        kept += keeps_the_lock()
    watching.end()
    found = places[gives_the_lock_away.__name__] / sum(places.values())
    share = given / (given + kept)
    assert share / 3 < found < 0.25 * share + 0.75


@pytest.mark.usefixtures("free_timer")
def test_a_timer_leaves_nothing_behind() -> None:
    seen: list[int] = []
    recorder = Recorder(root.__code__, list, lambda: (3, "head"))
    recorder.see = lambda stack, micros: seen.append(micros)  # type: ignore[method-assign]
    began = time.perf_counter()
    watching = Watching(recorder, 0.001)
    time.sleep(0.05)
    watching.end()
    lasted = (time.perf_counter() - began) * 1e6
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert lasted * 0.5 < sum(seen) < lasted + 2000
    count = len(seen)
    time.sleep(0.01)
    assert len(seen) == count


@pytest.mark.usefixtures("free_timer")
def test_a_look_that_fails_does_not_reach_the_task() -> None:
    recorder = Recorder(root.__code__, list, lambda: (3, "head"))
    tried: list[int] = []

    def fails(stack: Any, micros: int) -> None:
        tried.append(micros)
        raise ValueError("no")

    recorder.see = fails  # type: ignore[method-assign]
    watching = Watching(recorder, 0.001)
    time.sleep(0.02)
    watching.end()
    assert tried


@pytest.mark.usefixtures("free_timer")
def test_a_task_that_takes_the_signal_for_itself_keeps_it() -> None:
    recorder = Recorder(root.__code__, list, lambda: (3, "head"))
    watching = Watching(recorder, 10.0)
    rung: list[int] = []
    signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    watching.end()
    time.sleep(0.03)
    assert rung == [signal.SIGALRM]
    assert not timer.can_watch_here()


@pytest.mark.usefixtures("free_timer")
def test_a_handler_that_is_set_when_functions_are_opened_is_never_called() -> None:
    recorder = Recorder(root.__code__, list, lambda: (3, "head"))
    rung: list[int] = []
    watching = Watching(recorder, 0.001)
    with watching.opening():
        signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
        time.sleep(0.02)
    opened = recorder.profile.samples
    time.sleep(0.02)
    watching.end()
    assert rung == []
    assert 0 < opened < recorder.profile.samples


@pytest.mark.usefixtures("free_timer")
def test_a_task_that_had_a_timeout_of_its_own_is_not_disturbed_again() -> None:
    """Samples are lost for once; from the next task on a thread looks."""
    recorder = Recorder(root.__code__, list, lambda: (3, "head"))
    watching = Watching(recorder, 10.0)
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.alarm(5)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    watching.end()
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert not timer.can_watch_here()


@pytest.mark.usefixtures("free_timer")
def test_a_timer_that_is_stopped_by_another_thread() -> None:
    recorder = Recorder(root.__code__, list, lambda: (3, "head"))
    errors: list[BaseException] = []
    watching = Watching(recorder, 10.0)

    def stopped() -> None:
        try:
            watching.end()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=stopped)
    thread.start()
    thread.join()
    assert not errors
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert timer.can_watch_here()


@pytest.mark.usefixtures("free_timer")
def test_a_signal_that_is_in_use_stays_as_it_is() -> None:
    rung: list[int] = []

    def alarm(number: int, frame: Any) -> None:
        rung.append(number)

    signal.signal(signal.SIGALRM, alarm)
    try:
        recorder = Recorder(root.__code__, list, lambda: (3, "head"))
        watching = Watching(recorder, 0.001)
        assert signal.getsignal(signal.SIGALRM) is alarm
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        time.sleep(0.05)
        watching.end()
        assert signal.getsignal(signal.SIGALRM) is alarm
        assert len(rung) == 1
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert recorder.profile.samples


def test_a_forked_process_has_a_sampler_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of the other one was not forked along."""
    inherited = Sampler()
    inherited.process -= 1
    monkeypatch.setattr(sampling, "_sampler", inherited)
    own = sampling.sampler()
    assert own is not inherited
    assert sampling.sampler() is own


def test_records_are_counted_one_by_one_and_in_runs() -> None:
    taken: list[Any] = []
    operator = OpenOperator()
    operator.process = taken.append

    def run(values: Iterable[Any]) -> None:
        taken.extend(values)

    operator.run = run
    counts = RecordCounts()
    counts.of("map", operator)
    operator.run(iter("abc"))
    operator.process("d")
    assert counts.take() == {"map": 4}
    assert counts.take() == {"map": 0}
    operator.run(["e"])
    assert counts.take() == {"map": 1}
    assert taken == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(("path", "names"), [kind[:2] for kind in frames._KINDS])
def test_frames_are_looked_for_where_they_are(path: str, names: tuple[str, ...]) -> None:
    tree = ast.parse((Path(penstock.__file__).parent / path).read_text())
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert defined >= set(names)
    assert defined
