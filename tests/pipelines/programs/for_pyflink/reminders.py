"""An event-time timer for each sensor that has been silent; a side output for the warm ones."""

from pyflink.common import Duration, WatermarkStrategy
from pyflink.common.typeinfo import Types
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, OutputTag, StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueState, ValueStateDescriptor

READINGS = [(1000, "attic", 19), (2500, "cellar", 12), (3500, "attic", 31), (6000, "attic", 18)]
WARM = OutputTag("warm", Types.STRING())
SILENCE = 3000


class ReadingTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[0]


class Reminder(KeyedProcessFunction):
    def __init__(self):
        self.due: ValueState = None

    def open(self, runtime_context: RuntimeContext):
        self.due = runtime_context.get_state(ValueStateDescriptor("due", Types.LONG()))

    def process_element(self, value, ctx):
        if self.due.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.due.value())
        self.due.update(ctx.timestamp() + SILENCE)
        ctx.timer_service().register_event_time_timer(self.due.value())
        if value[2] > 30:
            yield WARM, f"{value[1]} has {value[2]} degrees"

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


def build(env: StreamExecutionEnvironment) -> tuple[DataStream, DataStream]:
    in_order = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    record = Types.TUPLE([Types.LONG(), Types.STRING(), Types.INT()])
    reminders = (
        env.from_collection(READINGS, record)
        .assign_timestamps_and_watermarks(in_order.with_timestamp_assigner(ReadingTime()))
        .key_by(lambda reading: reading[1])
        .process(Reminder())
    )
    return reminders, reminders.get_side_output(WARM)


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    silent, warm = build(environment)
    silent.print("silent")
    warm.print("warm")
    environment.execute()
