"""Write the table of options into the guide; run after a change of penstock.options."""

from pathlib import Path

from penstock.options import options_markdown

page = Path(__file__).parents[1] / "docs" / "guide" / "configuration.md"
before, mark, _ = page.read_text().partition("-->\n")
page.write_text(before + mark + options_markdown())
