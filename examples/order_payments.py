"""Orders and payments: matched as they come, with a reminder, and joined by time."""

from penstock.common import Duration, WatermarkStrategy
from penstock.datastream import (
    KeyedCoProcessFunction,
    ProcessJoinFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import ValueStateDescriptor

# Order and when it came, in milliseconds; payment of which order, and when.
ORDERS = [("a", 0), ("b", 1_000), ("c", 2_000)]
PAYMENTS = [("a", 3_000), ("c", 65_000)]

BY_TIME = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    lambda record, _: record[1]
)


class Remind(KeyedCoProcessFunction):
    """Reminds of orders that were not paid within a minute."""

    def open(self, runtime_context):
        self.paid = runtime_context.get_state(ValueStateDescriptor("paid"))

    def process_element1(self, order, ctx):
        ctx.timer_service().register_event_time_timer(order[1] + 60_000)

    def process_element2(self, payment, ctx):
        self.paid.update(payment[1])

    def on_timer(self, timestamp, ctx):
        paid = self.paid.value()
        if paid is None or paid > timestamp:
            yield f"{ctx.get_current_key()} is not paid"


class Took(ProcessJoinFunction):
    def process_element(self, order, payment, ctx):
        yield f"{order[0]} took {ctx.get_right_timestamp() - ctx.get_left_timestamp()} ms"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection(ORDERS).assign_timestamps_and_watermarks(BY_TIME)
    payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(BY_TIME)
    orders, payments = orders.key_by(0), payments.key_by(0)

    orders.connect(payments).process(Remind()).uid("remind").print()

    within_a_minute = orders.interval_join(payments).between(0, Duration.of_minutes(1))
    within_a_minute.upper_bound_exclusive().process(Took()).uid("took").print()

    env.execute("orders and payments")


if __name__ == "__main__":
    main()
