"""From rates to ratios: what the comparison is about. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.measure import Goal, median
from bench.peers.program import Wanted


@dataclass(frozen=True)
class Compared:
    """A program's ratios: how many times as fast as each of the others the first one is."""

    of: str
    by: Mapping[str, float]
    spread: Mapping[str, tuple[float, float]]
    """Lowest and highest of the rounds."""


def compared(of: str, rates: Mapping[str, Sequence[float]]) -> Compared:
    """`rates` are those of each contender, round by round; those that failed are left out.

    A ratio is taken within a round, since a machine has its moods, and the median of these is it.
    Who was not measured in every round is compared by medians.
    """
    ours = rates.get(of, ())
    by, spread = {}, {}
    for name, theirs in rates.items():
        if name == of or not theirs or not ours:
            continue
        if len(theirs) == len(ours):
            ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        else:
            ratios = [median(ours) / median(theirs)]
        by[name] = median(ratios)
        spread[name] = (min(ratios), max(ratios))
    return Compared(of, by, spread)


def goals(
    program: str, wanted: Sequence[Wanted], rates: Mapping[str, Sequence[float]]
) -> list[Goal]:
    """Those that could be measured."""
    found = []
    for each in wanted:
        ratio = compared(each.of, rates).by.get(each.contender)
        if ratio is not None:
            what = f"{program}: {each.of} / {each.contender}"
            found.append(Goal(what, ratio, each.at_least, unit=" ×"))
    return found
