"""`savepoint` and `checkpoints`: commands about epochs that were kept."""

from __future__ import annotations

from penstock.cli.completers import completed_by, jobs_and_directories
from penstock.cli.parser import Commands, add_command, group_of
from penstock.cli.parsers.jobs import add_job


def add_commands(commands: Commands) -> None:
    savepoint = add_command(
        commands, "savepoint", "make, list, show and delete savepoints", None, json=False
    )
    _add_savepoints(group_of(savepoint))
    checkpoints = add_command(
        commands,
        "checkpoints",
        "list the checkpoints that jobs have kept",
        "snapshots:list_checkpoints",
        "List the epochs that a job has kept, or that lie below a directory; without either, those "
        "of all jobs that are known. Each path can be given to `penstock run -s`.",
        """
        penstock checkpoints alerts
        penstock checkpoints /data/checkpoints
        """,
    )
    place = checkpoints.add_argument(
        "place", metavar="JOB|DIR", nargs="?", help="a job, or a directory of checkpoints"
    )
    completed_by(place, jobs_and_directories)


def _add_savepoints(commands: Commands) -> None:
    create = add_command(
        commands,
        "create",
        "let a running job write a savepoint",
        "jobs:create_savepoint",
        "Let a running job write a savepoint at the end of its epoch; it goes on meanwhile.",
        """
        penstock savepoint create alerts
        penstock savepoint create alerts /data/savepoints
        """,
    )
    add_job(create)
    create.add_argument(
        "directory", metavar="DIR", nargs="?", help="where it goes; else as the job is configured"
    )
    listing = add_command(
        commands,
        "list",
        "list savepoints",
        "snapshots:list_savepoints",
        "List the savepoints in a directory; without one, in those that your jobs are or were "
        "configured with.",
    )
    listing.add_argument("directory", metavar="DIR", nargs="?")
    show = add_command(
        commands,
        "show",
        "say what is in a savepoint or checkpoint",
        "snapshots:show",
        "Say what is in a savepoint or checkpoint, and whether all of its files are there.",
        "penstock savepoint show /data/savepoints/savepoint-1",
    )
    show.add_argument("path", metavar="PATH")
    dispose = add_command(
        commands,
        "dispose",
        "delete a savepoint",
        "snapshots:dispose",
        "Delete a savepoint, and nothing that is not one.",
        "penstock savepoint dispose /data/savepoints/savepoint-1 --yes",
    )
    dispose.add_argument("path", metavar="PATH")
    dispose.add_argument("-y", "--yes", action="store_true", help="do not ask")
