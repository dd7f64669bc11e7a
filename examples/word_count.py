"""Counts words; a line of output for each word that comes in. Run it with plain Python."""

from penstock.datastream import StreamExecutionEnvironment

LINES = ["to be or not to be", "that is the question"]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    (
        env.from_collection(LINES)
        .flat_map(str.split)
        .map(lambda word: (word, 1))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .print()
    )
    env.execute("word count")


if __name__ == "__main__":
    main()
