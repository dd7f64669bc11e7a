"""All programs of this directory in one job: modules that lie beside the script they run in."""

import discounts
import orders
import purchases
import reminders
import visits
import word_count
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
silent, warm = reminders.build(env)
streams = {
    **orders.build(env),
    **visits.build(env),
    "spent": purchases.build(env),
    "silent": silent,
    "to pay": discounts.build(env),
    "warm": warm,
    "words": word_count.build(env),
}
for name, stream in streams.items():
    stream.print(name).set_parallelism(1)
env.execute()
