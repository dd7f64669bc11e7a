"""Broadcast state: rules on one stream, prices on the other, put together when both have ended."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedBroadcastProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor

PRICES = [("tea", 400), ("coffee", 700), ("tea", 600), ("milk", 100)]
RULES = [("tea", 25), ("coffee", 10), ("coffee", 50)]
DISCOUNTS = MapStateDescriptor("discounts", Types.STRING(), Types.INT())


class ByPosition(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Discount(KeyedBroadcastProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.prices = runtime_context.get_list_state(ListStateDescriptor("prices", Types.INT()))

    def process_element(self, value, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext):
        self.prices.add(value[1])
        # Of two streams none is first; but no timer fires before both have come as far.
        ctx.timer_service().register_event_time_timer(10_000)

    def process_broadcast_element(self, value, ctx: KeyedBroadcastProcessFunction.Context):
        ctx.get_broadcast_state(DISCOUNTS).put(value[0], value[1])

    def on_timer(self, timestamp, ctx: KeyedBroadcastProcessFunction.OnTimerContext):
        discount = ctx.get_broadcast_state(DISCOUNTS).get(ctx.get_current_key()) or 0
        for price in self.prices:
            yield f"{ctx.get_current_key()} {price * (100 - discount) // 100}"


def build(env: StreamExecutionEnvironment) -> DataStream:
    in_time = WatermarkStrategy.for_monotonous_timestamps()
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    prices = (
        env.from_collection(PRICES, pair)
        .assign_timestamps_and_watermarks(in_time.with_timestamp_assigner(ByPosition()))
        .key_by(lambda price: price[0], key_type=Types.STRING())
    )
    rules = env.from_collection(RULES, pair).broadcast(DISCOUNTS)
    return prices.connect(rules).process(Discount(), Types.STRING())


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    build(environment).print("to pay")
    environment.execute()
