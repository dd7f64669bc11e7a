"""State as tables: read any state of a savepoint as a Spark DataFrame, make savepoints, change
them."""

from penstock.state_processor.spark_savepoint import Savepoint
from penstock.state_processor.spark_writer import SavepointWriter

__all__ = ["Savepoint", "SavepointWriter"]
