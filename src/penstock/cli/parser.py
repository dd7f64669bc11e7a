"""What all parsers of arguments share. They are in `parsers`, a file per group of commands."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from typing import Any, NoReturn

from penstock.cli.exit_codes import USAGE

Commands = Any  # argparse's own type for this is private


class Parser(argparse.ArgumentParser):
    """With examples below the help, and errors as JSON for those who asked for it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        message = message.removesuffix(", ARGUMENT")  # there may be none of those
        if "--json" in sys.argv:
            shown = {"code": USAGE, "type": "UsageError", "message": message}
            self.exit(USAGE, json.dumps({"error": shown}) + "\n")
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"penstock: {message}\n(see {self.prog} --help)\n")


def group_of(parent: Parser) -> Commands:
    """Where the commands of a parser are added; without one its help is shown."""
    parent.set_defaults(command=None, help=parent.print_help)
    return parent.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)


def add_command(
    commands: Commands,
    name: str,
    help: str,
    command: str | None,
    description: str = "",
    examples: str = "",
    json: bool = True,
) -> Parser:
    """A command, and `module:function` of what does its work."""
    epilog = f"examples:\n{textwrap.indent(textwrap.dedent(examples).strip(), '  ')}"
    parser: Parser = commands.add_parser(
        name,
        help=help,
        description=textwrap.fill(f"{description or help[0].upper() + help[1:] + '.'}", 78),
        epilog=epilog if examples else None,
    )
    parser.set_defaults(command=command)
    if json:
        parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser
