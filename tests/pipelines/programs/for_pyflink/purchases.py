"""What every customer has spent so far: a value in state, with a time to live."""

import pyflink.datastream as flink
from pyflink.common import Time, Types
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor

PURCHASES = [("eva", 10.1), ("tom", 2.3), ("eva", 0.7), ("tom", 4.4), ("eva", 1.05)]


class Spent(flink.KeyedProcessFunction):
    def open(self, runtime_context: flink.RuntimeContext):
        descriptor = ValueStateDescriptor("spent", Types.FLOAT())
        hour = StateTtlConfig.new_builder(Time.hours(1)).build()
        descriptor.enable_time_to_live(hour)
        self.spent = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx: "flink.KeyedProcessFunction.Context"):
        # A function of a worker's own that imports PyFlink only there.
        from pyflink.common import Row

        spent = (self.spent.value() or 0) + value[1]
        self.spent.update(spent)
        yield Row(ctx.get_current_key(), spent)


def build(env: flink.StreamExecutionEnvironment) -> flink.DataStream:
    record = Types.TUPLE([Types.STRING(), Types.FLOAT()])
    return (
        env.from_collection(PURCHASES, type_info=record)
        .key_by(lambda purchase: purchase[0], key_type=Types.STRING())
        .process(Spent(), Types.ROW([Types.STRING(), Types.DOUBLE()]))
    )


if __name__ == "__main__":
    environment = flink.StreamExecutionEnvironment.get_execution_environment()
    build(environment).print("spent")
    environment.execute("purchases")
