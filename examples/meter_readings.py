"""What each meter used from one reading to the next, though readings arrive out of order."""

from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

# meter, minute, what it showed
READINGS = [
    ("north", 0, 100),
    ("south", 0, 7),
    ("north", 20, 130),
    ("north", 10, 112),
    ("south", 15, 9),
    ("north", 30, 131),
]


class Used(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last"))

    def process_element(self, value, ctx):
        meter, minute, shown = value
        last = self.last.value()
        if last is not None:
            yield f"{meter} used {shown - last[1]} from minute {last[0]} to {minute}"
        self.last.update((minute, shown))


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_minutes(15)
    ).with_timestamp_assigner(lambda reading, _: reading[1] * 60_000)
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(strategy)
    keyed = readings.key_by(lambda reading: reading[0])
    keyed.in_event_time_order().process(Used()).print()
    env.execute("meter readings")


if __name__ == "__main__":
    main()
