"""How much work a fit is worth: what `--effort` stands for, by model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from glfm_cli.errors import UsageError
from glfm_cli.options import CHAINS, DRAWS, THIN, WARMUP, Sampling

NORMAL = "normal"
PLAIN = {"recalibrate": False}


@dataclass(frozen=True)
class Length:
    """How long a model is fitted; what is None is as where nothing is said.

    chains, warmup, draws, thin : those of `Sampling`; of an ascent its restarts are the chains
    first_chains : of a table that may have more; those come while estimates are too imprecise
    settings : beneath those that are given; `recalibrate` says whether forecasts are corrected by
        those of hidden cells
    """

    chains: int | None = None
    first_chains: int | None = None
    warmup: int | None = None
    draws: int | None = None
    thin: int | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Effort:
    """A choice of `--effort`.

    lengths : by model;  others : of those that are not named
    """

    lengths: Mapping[str, Length] = field(default_factory=dict)
    others: Length = Length()


EFFORTS = {
    "quick": Effort(
        lengths={
            # Weighed by what corrects forecasts; a linear part is slow at first.
            "auto": Length(chains=5, warmup=16, draws=5, settings={"linear": 0, "search": False}),
            "mixture": Length(chains=4, warmup=30, draws=5, settings=PLAIN),
            "clgp": Length(chains=2),
            "forest": Length(chains=2, warmup=5, draws=5, thin=1),
            "cnpf": Length(chains=1),
            "iqgme": Length(chains=2),
        },
        others=Length(chains=8, warmup=30, draws=5, settings=PLAIN),
    ),
    NORMAL: Effort(
        lengths={
            "glfm": Length(first_chains=CHAINS, warmup=60, draws=20, thin=4),
            "auto": Length(first_chains=7, warmup=60, draws=20, thin=4),
            # Chained equations forget their start within a few sweeps.
            "forest": Length(chains=4, warmup=10, draws=6, thin=2),
        },
    ),
    "thorough": Effort(
        lengths={
            **{name: Length(chains=16) for name in ("clgp", "cnpf", "iqgme")},
            "forest": Length(chains=8, warmup=15, draws=20, thin=2),
        },
        others=Length(chains=32, draws=30),
    ),
}


# What `normal` is to explore.
EXPLORED = Effort(lengths={"glfm": Length(warmup=WARMUP, draws=DRAWS, thin=THIN)})


def length_of(name: str | None, model: str, normal: Effort = EFFORTS[NORMAL]) -> Length:
    """Return how long an effort fits a model; raises UsageError when there is no such effort."""
    name = name or NORMAL
    if name not in EFFORTS:
        raise UsageError("--effort", value=name, expected=" or ".join(EFFORTS))
    effort = normal if name == NORMAL else EFFORTS[name]
    return effort.lengths.get(model, effort.others)


def paced(sampling: Sampling, model: str, normal: Effort = EFFORTS[NORMAL]) -> Sampling:
    """Return the options with what the effort says of a model's length; what is said stands.

    `normal` is what this effort is. Raises UsageError when there is no such effort.
    """
    length = length_of(sampling.effort, model, normal)
    given = {name: getattr(sampling, name) for name in ("chains", "warmup", "draws", "thin")}
    more = {n: getattr(length, n) for n, value in given.items() if value is None}
    settings = {**length.settings, **(sampling.settings or {})}
    return dataclasses.replace(sampling, **more, settings=settings or None, effort=None)
