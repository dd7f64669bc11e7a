"""The same visits in tumbling, sliding, session and count windows."""

from collections.abc import Iterable

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    DataStream,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from pyflink.datastream.window import (
    CountWindow,
    EventTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)

VISITS = [("home", 1), ("home", 2), ("help", 4), ("home", 6), ("help", 5), ("home", 14)]
SPAN = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.INT()])


class VisitTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return value[1]


class Number(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Span(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable
    ) -> Iterable[tuple]:
        window = context.window()
        yield key, window.start, window.end, len(list(elements))


class Counted(ProcessWindowFunction[int, tuple, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]
    ) -> Iterable[tuple]:
        return [(key, context.window().start, context.window().end, *elements)]


class Seconds(WindowFunction[tuple, tuple, str, CountWindow]):
    def apply(self, key: str, window: CountWindow, inputs: Iterable[tuple]) -> Iterable[tuple]:
        return [(key, [second for _, second in inputs])]


class LongerOnHelp(SessionWindowTimeGapExtractor):
    def extract(self, element: tuple) -> int:
        return 8 if element[0] == "help" else 5


def build(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    in_time = WatermarkStrategy.for_monotonous_timestamps()
    pages = (
        env.from_collection(VISITS, Types.TUPLE([Types.STRING(), Types.INT()]))
        .assign_timestamps_and_watermarks(in_time.with_timestamp_assigner(VisitTime()))
        .key_by(lambda visit: visit[0], key_type=Types.STRING())
    )
    sliding = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
    return {
        "tumbling": pages.window(TumblingEventTimeWindows.of(Time.milliseconds(5))).process(
            Span(), SPAN
        ),
        "sliding": pages.window(sliding).aggregate(
            Number(), window_function=Counted(), output_type=SPAN
        ),
        "session": pages.window(sessions).process(Span(), SPAN),
        "dynamic": pages.window(EventTimeSessionWindows.with_dynamic_gap(LongerOnHelp())).process(
            Span(), SPAN
        ),
        "count": pages.count_window(2).apply(Seconds()),
    }


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    for kind, stream in build(environment).items():
        stream.print(kind)
    environment.execute()
