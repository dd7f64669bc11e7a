"""A program as a user would hand it to spark-submit: it says nothing about where it runs, nor where
its checkpoints go."""

from pyspark.sql import SparkSession

from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
counts = (
    env.from_sequence(1, 1000)
    .map(lambda number: (number % 5, 1))
    .key_by(lambda pair: pair[0])
    .reduce(lambda one, other: (one[0], one[1] + other[1]))
)
found = dict(counts.execute_and_collect("submitted"))
master = SparkSession.active().sparkContext.master
print("counted", sorted(found.items()), master, env.get_max_parallelism(), flush=True)
