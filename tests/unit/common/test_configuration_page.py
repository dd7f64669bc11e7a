"""The configuration page lists the options as they are declared."""

from __future__ import annotations

from pathlib import Path

from penstock.options import options_markdown

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "configuration.md"


def test_the_table_is_up_to_date() -> None:
    table = options_markdown()
    written = PAGE.read_text()
    assert written.endswith(f"-->\n{table}"), (
        f"options have changed: end {PAGE} with the output of penstock.options.options_markdown()"
    )
