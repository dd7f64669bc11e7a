"""`demo`, `version`, `completion`."""

from __future__ import annotations

import argparse

from penstock.cli.parser import Commands, add_command

SHELLS = ("bash", "zsh", "fish")


def add_commands(commands: Commands) -> None:
    demo = add_command(
        commands,
        "demo",
        "run a sensor job on local Spark, live in the terminal",
        "others:demo",
        "Generated readings of twenty sensors; running averages and alerts in keyed state; every "
        "epoch a checkpoint. Ends when all readings are read, or on Ctrl-C. Started again after "
        "Ctrl-C or kill -9, it goes on from its last checkpoint.",
        json=False,
    )
    demo.add_argument(
        "--seconds", type=_positive, default=30.0, help="how many seconds of readings (30)"
    )
    demo.add_argument("--rate", type=_positive, default=5000.0, help="readings per second (5000)")
    demo.add_argument(
        "--checkpoint-dir", metavar="DIR", help="where checkpoints are kept; else with your state"
    )
    demo.add_argument(
        "--fresh", action="store_true", help="forget the checkpoints of an earlier start"
    )
    add_command(commands, "version", "print the version", "others:version")
    completion = add_command(
        commands,
        "completion",
        "print what makes a shell complete commands, jobs and paths",
        "others:completion",
        examples="""
        eval "$(penstock completion bash)"                                    # in ~/.bashrc
        eval "$(penstock completion zsh)"                                     # in ~/.zshrc
        penstock completion fish > ~/.config/fish/completions/penstock.fish
        """,
        json=False,
    )
    completion.add_argument("shell", choices=SHELLS)


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be greater than 0, got {text}")
    return number
