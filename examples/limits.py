"""Readings against limits that are broadcast: readings whose limit is not there yet wait for it."""

from penstock.common import Types
from penstock.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor

READINGS = [("a", 20.0), ("b", 18.5), ("a", 24.1), ("b", 30.0), ("c", 99.0)]
LIMITS_THEN = [("a", 23.0), ("b", 25.0)]

LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.DOUBLE())
WAITING = ListStateDescriptor("waiting", Types.DOUBLE())


class Judge(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.waiting = runtime_context.get_list_state(WAITING)

    def process_element(self, reading, ctx):
        sensor, celsius = reading
        limit = ctx.get_broadcast_state(LIMITS).get(sensor)
        if limit is None:
            self.waiting.add(celsius)
        elif celsius > limit:
            yield f"{sensor}: {celsius} is above {limit}"

    def process_broadcast_element(self, new, ctx):
        sensor, limit = new
        ctx.get_broadcast_state(LIMITS).put(sensor, limit)
        found = []

        def judge(key, waiting):
            if key == sensor:
                found.extend(celsius for celsius in waiting.get() if celsius > limit)
                waiting.clear()

        ctx.apply_to_keyed_state(WAITING, judge)
        for celsius in found:
            yield f"{sensor}: {celsius} is above {limit}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    readings = env.from_collection(READINGS).key_by(lambda reading: reading[0])
    limits = env.from_collection(LIMITS_THEN).broadcast(LIMITS)
    readings.connect(limits).process(Judge()).uid("judge").print()
    env.execute("limits")


if __name__ == "__main__":
    main()
