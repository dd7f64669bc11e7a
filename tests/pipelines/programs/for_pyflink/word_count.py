"""Counts words. In batch mode: one result per word."""

import argparse

from pyflink.common import Types
from pyflink.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

POEM = ["the rain is over", "the sun is out", "over and out"]


def build(env: StreamExecutionEnvironment) -> DataStream:
    return (
        env.from_collection(POEM)
        .flat_map(lambda line: line.split())
        .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallelism", type=int, default=1)
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(parser.parse_args().parallelism)
    environment.set_runtime_mode(RuntimeExecutionMode.BATCH)
    build(environment).print()
    environment.execute()
