"""Avro: schemas, and records as a type of streams and of state. Needs the package fastavro."""

from __future__ import annotations

from penstock.common._type_avro import AvroSchema, GenericRecordAvroTypeInfo
from penstock.pyflink_names import missing_name

__all__ = ["AvroSchema", "GenericRecordAvroTypeInfo"]

__getattr__ = missing_name(__name__)
