"""`list`, `info`, `cancel`, `stop`: commands that look at running jobs, or talk to one."""

from __future__ import annotations

from penstock.cli.completers import completed_by, job_names
from penstock.cli.parser import Commands, Parser, add_command

JOB_HELP = "the job's name, its job id, the id of its run, or the beginning of one of them"


def add_commands(commands: Commands) -> None:
    listing = add_command(
        commands,
        "list",
        "list running jobs",
        "jobs:list_jobs",
        "List your jobs that run, on this machine and on others with the same home, and those that "
        "have died since the last time.",
        """
        penstock list
        penstock list --all
        penstock list --json | jq -r '.jobs[].run_id'
        """,
    )
    listing.add_argument("--all", action="store_true", help="also the last that have ended")
    info = add_command(commands, "info", "say what is known of a job", "jobs:info")
    add_job(info)
    cancel = add_command(
        commands,
        "cancel",
        "cancel a job",
        "jobs:cancel",
        "Cancel a job, and wait for its end. Its checkpoint goes with it, unless it is to be "
        "retained. To go on later, use `penstock stop`, or cancel it with a savepoint.",
        """
        penstock cancel alerts
        penstock cancel alerts --with-savepoint
        penstock cancel alerts --with-savepoint /data/savepoints
        """,
    )
    add_job(cancel)
    cancel.add_argument(
        "--with-savepoint",
        metavar="DIR",
        nargs="?",
        const="",
        help="make a savepoint first, in this directory or in the job's own",
    )
    stop = add_command(
        commands,
        "stop",
        "stop a job with a savepoint",
        "jobs:stop",
        "Let a job end its epoch, write a savepoint and stop. All output up to the savepoint is "
        "committed, so that a job started from it goes on exactly there.",
        """
        penstock stop alerts
        penstock stop alerts --savepoint-path /data/savepoints
        penstock stop alerts --drain
        """,
    )
    add_job(stop)
    stop.add_argument(
        "--drain",
        action="store_true",
        help="let time go to its end first, so that all windows and timers fire; for good",
    )
    stop.add_argument("--savepoint-path", metavar="DIR", help="where the savepoint goes")


def add_job(parser: Parser) -> None:
    completed_by(parser.add_argument("job", metavar="JOB", help=JOB_HELP), job_names)
