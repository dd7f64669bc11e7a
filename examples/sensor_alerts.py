"""Tells when a sensor's temperature jumps, by keyed state that survives a restart."""

from penstock.common import Types
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

READINGS = [("a", 20.0), ("b", 18.5), ("a", 20.4), ("b", 24.1), ("a", 17.0), ("a", 23.5)]


class TemperatureAlert(KeyedProcessFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, value, ctx):
        last = self.last.value()
        if last is not None and value[1] - last > 5:
            yield f"{ctx.get_current_key()}: from {last} to {value[1]}"
        self.last.update(value[1])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(READINGS).key_by(lambda reading: reading[0]).process(
        TemperatureAlert()
    ).print()
    env.execute("sensor alerts")


if __name__ == "__main__":
    main()
