"""JSON in, rows and JSON out; the log on standard output, as in PyFlink's examples."""

import json
import logging
import sys

from pyflink.common import Row, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment

ORDERS = [
    '{"id": 1, "item": {"name": "pen", "price": 1.5}, "rush": false}',
    '{"id": 2, "item": {"name": "desk", "price": 250.0}, "rush": true}',
    '{"id": 3, "item": {"name": "lamp", "price": 40.25}, "rush": false}',
]
ROW = Types.ROW_NAMED(["id", "text"], [Types.INT(), Types.STRING()])


def with_tax(order: Row) -> tuple:
    parsed = json.loads(order.text)
    parsed["item"]["price"] *= 2
    return order.id, parsed


def is_dear(order: tuple) -> bool:
    return order[1]["item"]["price"] > 50


def build(env: StreamExecutionEnvironment) -> dict[str, DataStream]:
    orders = env.from_collection(list(enumerate(ORDERS, 1)), ROW)
    dear = orders.map(with_tax).filter(is_dear)
    rush = Types.TUPLE([Types.INT(), Types.STRING(), Types.BOOLEAN(), Types.DOUBLE()])
    fields = dear.map(
        lambda o: (o[0], o[1]["item"]["name"], o[1]["rush"], o[1]["item"]["price"]), rush
    )
    return {"orders": orders, "dear": dear, "fields": fields}


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(1)
    for name, stream in build(environment).items():
        stream.print(name)
    environment.execute()
