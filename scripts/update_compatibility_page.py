"""Write docs/pyflink-compatibility.md: what works, what does more, what is refused and why.

Run after a change of anything that PyFlink has, too. `tests/unit/test_pyflink_surface.py` says
when the page is not up to date.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from pyflink_surface import WRAPS_JAVA, Finding, Verdict, compare

from penstock.pyflink_names import (
    ABSENT_MODULES,
    MOVED_NAMES,
    OLD_CLASSES,
    OLD_KEYWORDS,
    OLD_METHODS,
)

PAGE = Path(__file__).parents[1] / "docs" / "pyflink-compatibility.md"

INTRODUCTION = """\
# Compatibility with PyFlink

Made by `scripts/update_compatibility_page.py` from the public signatures of PyFlink 2.3 under
`pyflink.common`, `pyflink.datastream` and `pyflink.metrics`, each compared with what Penstock has
under the same path. A name *works* if it is there and takes PyFlink's parameters by the same names
in the same places. It *does more* if it takes further ones, or if the class has further methods.
What is *refused* raises an error with the reason below.

Parameters that hold Java objects (`j_…`) are left out wherever they may be.
"""
OLD_NAMES = """\
## Names of Flink 1.x

PyFlink 2.3 has them no more, and programs still use them. They work; those marked with * give a
`DeprecationWarning`, which Python shows for the program's own lines.
"""


def page(findings: list[Finding]) -> str:
    by_verdict: dict[Verdict, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_verdict[finding.verdict].append(finding)
    works, more, refused = (
        by_verdict[verdict] for verdict in (Verdict.WORKS, Verdict.MORE, Verdict.REFUSED)
    )
    counts = f"{len(works)} names work, {len(more)} do more, {len(refused)} are refused.\n"
    parts = [
        INTRODUCTION,
        counts,
        "## Works\n",
        *_works(works),
        "### Accepted, without effect\n",
        *_lines(_item(f, f.no_effect) for f in works + more if f.no_effect),
        "## Works and does more\n",
        *_lines(_item(f, f.note) for f in more),
        "## Refused\n",
        *_lines(_refused(refused)),
        OLD_NAMES,
        *_lines(_old()),
    ]
    return "\n".join(parts)


def _works(findings: list[Finding]) -> Iterator[str]:
    """A list for each module, a line for each class."""
    modules: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for finding in findings:
        owner, _, name = finding.name.rpartition(".")
        modules[finding.module][owner or name].extend([name] if owner and name else [])
    for module, classes in modules.items():
        yield f"**`{module}`**\n"
        yield from _lines(
            f"`{owner}`" + (f": {', '.join(_shown(name) for name in names)}" if names else "")
            for owner, names in classes.items()
        )


def _shown(name: str) -> str:
    return "the constructor" if name == "__init__" else f"`{name}`"


def _refused(findings: list[Finding]) -> Iterator[str]:
    """By reason: whole modules, then names of a module, then constructors that wrap Java."""
    whole = {finding.module: finding.note for finding in findings if not finding.name}
    for module, reason in whole.items():
        names = [f"`{f.name}`" for f in findings if f.module == module and f.name]
        yield f"`{module}` as a whole ({', '.join(names)}): {reason}"
    rest: dict[tuple[str, str], list[str]] = defaultdict(list)
    wrappers = []
    for finding in findings:
        if finding.note == WRAPS_JAVA:
            wrappers.append(f"`{finding.module}.{finding.name.removesuffix('.__init__')}`")
        elif finding.module not in whole:
            rest[finding.module, finding.note].append(f"`{finding.name}`")
    for module, reason in ABSENT_MODULES.items():
        if (short := module.removeprefix("penstock.")) not in whole:
            yield f"`{short}` as a whole: {reason}"
    for (module, reason), names in rest.items():
        yield f"`{module}`: {', '.join(names)}: {reason}"
    yield (
        "the constructors that only wrap a Java object; objects come from methods and factories, "
        f"or the class is subclassed in Python: {', '.join(wrappers)}"
    )


def _old() -> Iterator[str]:
    for name, instead in OLD_METHODS.items():
        yield f"`{name}`*: use {instead}"
    for name, instead in OLD_CLASSES.items():
        yield f"`{name.removeprefix('penstock.')}`: use {instead}"
    for method, keywords in OLD_KEYWORDS.items():
        for before, now in keywords.items():
            yield f"`{method}({before}=…)`*: use `{now}=`"
    for module, names in MOVED_NAMES.items():
        homes: dict[str, list[str]] = defaultdict(list)
        for name, home in names.items():
            homes[home].append(f"`{name}`")
        for home, moved in homes.items():
            there = "refused with it" if home in ABSENT_MODULES else "works"
            yield (
                f"`{module.removeprefix('penstock.')}`: {', '.join(moved)}*: use them from "
                f"`{home.removeprefix('penstock.')}` ({there})"
            )


def _item(finding: Finding, text: str) -> str:
    return f"`{finding.module}.{finding.name}`: {text}"


def _lines(items: Iterable[str]) -> Iterator[str]:
    yield "".join(f"- {item}\n" for item in items)


if __name__ == "__main__":
    PAGE.write_text(page(compare()))
