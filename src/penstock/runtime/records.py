"""By this name checkpoints of before know what makes their records: see `datastream._records`."""

from penstock.datastream._records import RecordMaker, _make_record, record_class

__all__ = ["RecordMaker", "_make_record", "record_class"]
