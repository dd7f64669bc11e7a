"""Every option that Penstock knows, declared once; configuration, CLI and docs read it here.

Keys are Flink's wherever Flink has one. Options say nothing of how they are acted upon.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar, cast

from penstock.common.config_options import ConfigOption, OptionType
from penstock.errors import InvalidArgumentError

T = TypeVar("T")

_BOOLEAN, _INT, _FLOAT = OptionType.BOOLEAN, OptionType.INT, OptionType.FLOAT
_STRING, _DURATION, _MEMORY = OptionType.STRING, OptionType.DURATION, OptionType.MEMORY
_SECOND = 1_000
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE

_OPTIONS: dict[str, ConfigOption[Any]] = {}


def _option(
    key: str, kind: OptionType, default: T, help: str, *fallback_keys: str
) -> ConfigOption[T]:
    return _register(ConfigOption(key, kind, default, help, (), fallback_keys))


def _optional(
    key: str, kind: OptionType, of: type[T], help: str, *fallback_keys: str
) -> ConfigOption[T | None]:
    """An option without a default; `of` is the type of its values once they are parsed."""
    option: ConfigOption[T | None] = ConfigOption(key, kind, None, help, (), fallback_keys)
    return _register(option)


def _choice(
    key: str, default: T, choices: Iterable[str], help: str, *fallback_keys: str
) -> ConfigOption[T]:
    return _register(
        ConfigOption(key, OptionType.ENUM, default, help, tuple(choices), fallback_keys)
    )


def _register(option: ConfigOption[T]) -> ConfigOption[T]:
    if option.key in _OPTIONS:
        raise InvalidArgumentError(f"option {option.key!r} is declared twice")
    _OPTIONS[option.key] = option
    return option


# Pipeline
PARALLELISM = _optional(
    "parallelism.default",
    _INT,
    int,
    "Subtasks per operator; unset or -1, as many as the engine has slots.",
)
PIPELINE_NAME = _option("pipeline.name", _STRING, "Penstock Job", "Name shown for the job.")
MAX_PARALLELISM = _optional(
    "pipeline.max-parallelism",
    _INT,
    int,
    "Number of key groups, the upper bound for rescaling; fixed once state is written. Unset, one "
    "and a half times an operator's parallelism, rounded up to a power of two, at least 128.",
)
OPERATOR_CHAINING = _option(
    "pipeline.operator-chaining.enabled",
    _BOOLEAN,
    True,
    "Run operators joined by a forward edge in one call.",
    "pipeline.operator-chaining",
)
AUTO_WATERMARK_INTERVAL = _option(
    "pipeline.auto-watermark-interval",
    _DURATION,
    200,
    "Time between two periodic watermarks within an epoch; each epoch ends with one, too. 0 for no "
    "periodic watermarks at all.",
)
OBJECT_REUSE = _option(
    "pipeline.object-reuse",
    _BOOLEAN,
    False,
    "No effect: chained functions always get records without a copy, unless a stream branches.",
)
GENERIC_TYPES = _option(
    "pipeline.generic-types",
    _BOOLEAN,
    True,
    "No effect yet: values that only pickle can carry are always allowed.",
)
AUTO_GENERATE_UIDS = _option(
    "pipeline.auto-generate-uids",
    _BOOLEAN,
    True,
    "Give operators without a uid one derived from the graph; if false, they are refused.",
)
PYTHON_FILES = _optional(
    "python.files",
    _STRING,
    str,
    "Python files, directories of modules and zip files that functions import from, separated by "
    "commas; env.add_python_file adds one.",
)
PYTHON_ARCHIVES = _optional(
    "python.archives",
    _STRING,
    str,
    "Archives that are unpacked in the workers' working directory, separated by commas, each with "
    "#name if it is to have another name there; env.add_python_archive adds one.",
)
PYTHON_REQUIREMENTS = _optional(
    "python.requirements",
    _STRING,
    str,
    "A requirements file whose packages functions import, with #directory if they are to be taken "
    "from there and not downloaded; env.set_python_requirements sets it.",
)
PYTHON_EXECUTABLE = _optional(
    "python.executable",
    _STRING,
    str,
    "The Python that workers run, which must have Penstock; env.set_python_executable sets it.",
)
JARS = _optional(
    "pipeline.jars",
    _STRING,
    str,
    "Jars for Spark, separated by semicolons; env.add_jars adds some.",
)
CLASS_PATHS = _optional(
    "pipeline.classpaths",
    _STRING,
    str,
    "Jars and directories that all machines have, for Spark's class path, separated by semicolons; "
    "env.add_classpaths adds some, before Spark starts.",
)
CACHED_FILES = _optional(
    "pipeline.cached-files",
    _STRING,
    str,
    "Files that functions find by name, as name:n,path:p,executable:true and separated by "
    "semicolons; env.register_cached_file adds one.",
)
RUNTIME_MODE = _choice(
    "execution.runtime-mode",
    "STREAMING",
    ("STREAMING", "BATCH", "AUTOMATIC"),
    "Epoch after epoch, with every update of keyed aggregates (STREAMING), or all input in one "
    "epoch, with their last values only (BATCH); AUTOMATIC is BATCH if all sources end.",
)

# Checkpoints and state
CHECKPOINT_INTERVAL = _optional(
    "execution.checkpointing.interval",
    _DURATION,
    int,
    "Longest time that an epoch reads Python sources before it is checkpointed; it ends earlier "
    "when there is no more to read. Unset, 10 s.",
)
CHECKPOINT_MODE = _choice(
    "execution.checkpointing.mode",
    "EXACTLY_ONCE",
    ("EXACTLY_ONCE", "AT_LEAST_ONCE", "AT_MOST_ONCE"),
    "Guarantee for state and for sinks that can give it.",
)
CHECKPOINT_DIR = _optional(
    "execution.checkpointing.dir",
    _STRING,
    str,
    "Directory of checkpoints; the job's own directory is made below it.",
    "state.checkpoints.dir",
)
SAVEPOINT_DIR = _optional(
    "execution.checkpointing.savepoint-dir",
    _STRING,
    str,
    "Directory of savepoints for which no path is given.",
    "state.savepoints.dir",
)
CHECKPOINT_MIN_PAUSE = _option(
    "execution.checkpointing.min-pause",
    _DURATION,
    0,
    "Shortest time from the end of one checkpoint to the start of the next epoch.",
)
CHECKPOINT_TIMEOUT = _option(
    "execution.checkpointing.timeout", _DURATION, 10 * _MINUTE, "When a checkpoint is given up."
)
CHECKPOINTS_RETAINED = _option(
    "execution.checkpointing.num-retained",
    _INT,
    1,
    "Completed checkpoints that are kept.",
    "state.checkpoints.num-retained",
)
CHECKPOINT_RETENTION = _choice(
    "execution.checkpointing.externalized-checkpoint-retention",
    "NO_EXTERNALIZED_CHECKPOINTS",
    ("DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"),
    "Whether a cancelled job keeps its checkpoint: only if it is to be retained. One that fails or "
    "is interrupted (Ctrl-C, a dead driver) always does.",
)
TOLERABLE_FAILED_CHECKPOINTS = _option(
    "execution.checkpointing.tolerable-failed-checkpoints",
    _INT,
    0,
    "How many checkpoints in a row may fail to be written, before that fails the job as other "
    "errors do (and the restart strategy decides). Each is tried again after a second.",
)
SNAPSHOT_COMPRESSION = _option(
    "execution.checkpointing.snapshot-compression",
    _BOOLEAN,
    False,
    "No effect: full images of state are always compressed, an epoch's changes never.",
)
RECOVERY_PATH = _optional(
    "execution.state-recovery.path",
    _STRING,
    str,
    "A savepoint or retained checkpoint that the job starts from: a savepoint's directory, a job's "
    "directory of checkpoints, or one of the manifests in its epochs. A job that has begun from it "
    "already goes on from its own newest checkpoint.",
    "execution.savepoint.path",
)
RECOVERY_IGNORE_UNCLAIMED = _option(
    "execution.state-recovery.ignore-unclaimed-state",
    _BOOLEAN,
    False,
    "Drop state of operators that the program no longer has; otherwise it is refused.",
    "execution.savepoint.ignore-unclaimed-state",
)
RECOVERY_ANEW = _option(
    "penstock.state-recovery.anew",
    _BOOLEAN,
    False,
    "Start from execution.state-recovery.path even if the job has begun from it already.",
)
RECOVERY_RESET_SOURCES = _optional(
    "penstock.state-recovery.reset-sources",
    _STRING,
    str,
    "Uids of sources, separated by commas, whose stored positions are forgotten when the job "
    "starts from execution.state-recovery.path: they begin where the program says.",
)
TRUST_PICKLE = _option(
    "penstock.trust-pickle",
    _BOOLEAN,
    False,
    "Start also from a savepoint or checkpoint that somebody else wrote, though it holds pickled "
    "values, which run code when they are opened.",
)
STATE_BACKEND = _choice(
    "state.backend.type",
    "hashmap",
    ("hashmap", "rocksdb"),
    "Local store: hashmap for state that fits in memory, rocksdb for more.",
    "state.backend",
)
STATE_LOCAL_DIR = _optional(
    "state.backend.local-dir",
    _STRING,
    str,
    "Directory on each host for local stores; unset, below the temporary directory.",
    "state.backend.rocksdb.localdir",
)

# Restarts
RESTART_STRATEGY = cast(
    "ConfigOption[str | None]",
    _choice(
        "restart-strategy.type",
        None,
        ("none", "fixed-delay", "failure-rate", "exponential-delay"),
        "What to do when the job fails; unset, exponential-delay with checkpoints, else none.",
        "restart-strategy",
    ),
)
FIXED_DELAY_ATTEMPTS = _option(
    "restart-strategy.fixed-delay.attempts", _INT, 1, "Restarts before the job fails for good."
)
FIXED_DELAY_DELAY = _option(
    "restart-strategy.fixed-delay.delay", _DURATION, _SECOND, "Wait before each restart."
)
FAILURE_RATE_MAX_FAILURES = _option(
    "restart-strategy.failure-rate.max-failures-per-interval",
    _INT,
    1,
    "Failures within the interval before the job fails for good.",
)
FAILURE_RATE_INTERVAL = _option(
    "restart-strategy.failure-rate.failure-rate-interval",
    _DURATION,
    _MINUTE,
    "The interval over which failures are counted.",
)
FAILURE_RATE_DELAY = _option(
    "restart-strategy.failure-rate.delay", _DURATION, _SECOND, "Wait before each restart."
)
EXPONENTIAL_INITIAL_BACKOFF = _option(
    "restart-strategy.exponential-delay.initial-backoff", _DURATION, _SECOND, "First wait."
)
EXPONENTIAL_MAX_BACKOFF = _option(
    "restart-strategy.exponential-delay.max-backoff", _DURATION, _MINUTE, "Longest wait."
)
EXPONENTIAL_MULTIPLIER = _option(
    "restart-strategy.exponential-delay.backoff-multiplier",
    _FLOAT,
    1.5,
    "Factor from one wait to the next.",
)
EXPONENTIAL_RESET_THRESHOLD = _option(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    _DURATION,
    _HOUR,
    "Time without failure after which the wait is the first one again.",
)
EXPONENTIAL_JITTER = _option(
    "restart-strategy.exponential-delay.jitter-factor",
    _FLOAT,
    0.1,
    "Random part of the wait, as a fraction of it.",
)
EXPONENTIAL_ATTEMPTS = _optional(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    _INT,
    int,
    "Restarts before the job fails for good, counted until a reset; unset, no limit.",
)

# Tasks and metrics
LATENCY_INTERVAL = _option(
    "metrics.latency.interval", _DURATION, 0, "No effect yet: there are no latency markers."
)
TASK_CANCELLATION_INTERVAL = _option(
    "task.cancellation.interval", _DURATION, 30 * _SECOND, "No effect yet: Spark stops tasks."
)
TASK_CANCELLATION_TIMEOUT = _option(
    "task.cancellation.timeout", _DURATION, 3 * _MINUTE, "No effect yet: Spark stops tasks."
)

# Penstock's own
EXECUTOR = _choice(
    "penstock.executor",
    "spark",
    ("spark", "local"),
    "spark runs on Spark, local in this process without a JVM.",
)
JOB_ID = _optional(
    "penstock.job-id",
    _STRING,
    str,
    "Identity of the job in the checkpoint directory; unset, made of the job's name, or of the "
    "main script's path if it has none.",
)
EPOCH_INTERVAL = _option(
    "penstock.epoch.interval",
    _DURATION,
    0,
    "Shortest time from one epoch to the next; 0 starts the next as soon as there is input.",
)
EPOCH_ADAPTIVE = _option(
    "penstock.epoch.adaptive.enabled",
    _BOOLEAN,
    True,
    "Let epochs of Python sources that have more to give than can be worked on at once be as long "
    "as fixed-cost-share and longest say. False reads max-records-per-epoch, or for as long as the "
    "checkpoint interval, whichever comes first.",
)
EPOCH_FIXED_SHARE = _option(
    "penstock.epoch.adaptive.fixed-cost-share",
    _FLOAT,
    0.1,
    "The share of a long epoch that its fixed cost is to take, for starting tasks and committing. "
    "Smaller gives more throughput under load, larger shorter epochs.",
)
EPOCH_LONGEST = _option(
    "penstock.epoch.adaptive.longest",
    _DURATION,
    5 * _SECOND,
    "What an epoch is to take at most, whatever share of it is fixed cost. One that has little to "
    "read takes no longer than that needs.",
)
KEEP_PACE = _option(
    "penstock.source.keep-pace",
    _BOOLEAN,
    True,
    "Let Python sources whose records meet by key, and which all are behind, read as far as the "
    "slowest of them in event time, so that windows and joins need not store what is ahead. Goes "
    "with penstock.epoch.adaptive.enabled.",
)
SOURCE_START = _optional(
    "penstock.source.start",
    _STRING,
    str,
    "Where sources begin to read that have no position yet, as uid=where and separated by commas: "
    "a position (42), a time (2026-11-01T08:00:00Z) or milliseconds since 1970 (@1793520000000).",
)
MAX_RECORDS_PER_EPOCH = _optional(
    "penstock.source.max-records-per-epoch",
    _INT,
    int,
    "Records that each subtask of each Python source gives to one epoch at most, shared among the "
    "splits that it reads: one from each at least. Unset, 5,000,000 if the length of epochs is "
    "adapted, else 500,000.",
)
ITERATION_WARN_AFTER_TURNS = _option(
    "penstock.iteration.warn-after-turns",
    _INT,
    1_000,
    "Warn of an iteration that has had records in its loop for so many epochs in a row in which no "
    "source gave any; 0 never warns.",
)
EVENT_TIME_ORDER = _option(
    "penstock.event-time-order.enabled",
    _BOOLEAN,
    False,
    "Handle records of all keyed streams in the order of their timestamps, once the watermark has "
    "passed them, as in_event_time_order() does for one.",
)
SIDE_INPUT_MAX_ROWS = _option(
    "penstock.side-input.max-rows",
    _INT,
    1_000_000,
    "Rows that a side input may have: it is read on the driver, and every worker holds all of it.",
)
STATE_CACHE_ENTRIES = _option(
    "penstock.state.cache-entries",
    _INT,
    200_000,
    "State values that a task keeps as live objects, of each state. If only this is set, no more; "
    "else as many more as penstock.state.cache-memory allows.",
)
STATE_CACHE_MEMORY = _option(
    "penstock.state.cache-memory",
    _MEMORY,
    512 << 20,
    "Memory that a Python worker may have before a task keeps no more state values live than "
    "penstock.state.cache-entries.",
)
STATE_MAX_SEGMENTS = _option(
    "penstock.state.max-segments",
    _INT,
    24,
    "Changelog segments of a subtask before they are rewritten, into one or into an image.",
)
COUNT_WINDOW_SEMANTICS = _choice(
    "penstock.count-window.semantics",
    "pyflink",
    ("pyflink", "java"),
    "What count_window(size, slide) and count_window_all mean: pyflink fires full windows only, "
    "each with exactly size elements; java fires every slide elements with up to size of them.",
)
WINDOW_SLICES = _option(
    "penstock.window.slices",
    _BOOLEAN,
    True,
    "Put sliding windows of an AggregateFunction together from slices as long as the slide, by its "
    "merge(). False keeps each window by itself, and merge() is not called.",
)
PROFILE = _option(
    "penstock.profile.enabled",
    _BOOLEAN,
    False,
    "Note what tasks spend their time on, and write it when the job ends: per operator, and as a "
    "flame graph.",
)
PROFILE_DIR = _option(
    "penstock.profile.dir",
    _STRING,
    "penstock-profile",
    "Directory of profiles, on the driver's machine; each job has one of its name in it.",
)
PROFILE_INTERVAL = _option(
    "penstock.profile.interval", _DURATION, 10, "Time between two looks at a profiled task."
)
SPARK_MASTER = _option(
    "penstock.spark.master", _STRING, "local[*]", "Spark master, if no session is running yet."
)


def all_options() -> list[ConfigOption[Any]]:
    """Every option, in the order of declaration."""
    return list(_OPTIONS.values())


def find_option(key: str) -> ConfigOption[Any] | None:
    """The option that is called `key` now or was in an older Flink."""
    if key in _OPTIONS:
        return _OPTIONS[key]
    return next((o for o in _OPTIONS.values() if key in o.fallback_keys), None)


def nearest_key(key: str) -> str | None:
    """The known key that a mistyped one most likely means."""
    near = difflib.get_close_matches(key, _OPTIONS, n=1, cutoff=0.6)
    return near[0] if near else None


def mistyped(key: str) -> str | None:
    """The known key, if one that is not ours is so near that it can hardly be meant otherwise."""
    near = difflib.get_close_matches(key, _OPTIONS, n=1, cutoff=0.9)
    return near[0] if near else None


def reject_unknown_keys(keys: Iterable[str]) -> None:
    """Raise for the first key that claims to be Penstock's and is none; others are not ours."""
    for key in keys:
        if key.startswith("penstock.") and key not in _OPTIONS:
            raise InvalidArgumentError.unknown_option(key, nearest_key(key))


def options_markdown() -> str:
    """The table for the documentation."""
    lines = ["| Key | Type | Default | What it does |", "|---|---|---|---|"]
    lines += [
        f"| `{o.key}` | {_type_text(o)} | {_default_text(o)} | {o.help} |"
        for o in _OPTIONS.values()
    ]
    return "\n".join(lines) + "\n"


def _type_text(option: ConfigOption[Any]) -> str:
    return ", ".join(option.choices) if option.choices else option.type.value


def _default_text(option: ConfigOption[Any]) -> str:
    if option.default is None:
        return "unset"
    if option.type is OptionType.BOOLEAN:
        return "`true`" if option.default else "`false`"
    if option.type is OptionType.DURATION:
        return f"`{_duration_text(option.default)}`"
    if option.type is OptionType.MEMORY:
        return f"`{option.default >> 20}m`"
    return f"`{option.default}`"


def _duration_text(millis: int) -> str:
    for unit, size in (("h", _HOUR), ("min", _MINUTE), ("s", _SECOND)):
        if millis and millis % size == 0:
            return f"{millis // size} {unit}"
    return f"{millis} ms"
