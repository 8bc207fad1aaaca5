"""How much work a fit is worth: what `--effort` stands for, by model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from glfm_cli.errors import UsageError
from glfm_cli.options import Sampling

NORMAL = "normal"


@dataclass(frozen=True)
class Length:
    """How long a model is fitted; what is None is as where nothing is said.

    chains, warmup, draws, thin : those of `Sampling`; of an ascent its restarts are the chains
    recalibrate : whether forecasts are corrected by those of hidden cells
    """

    chains: int | None = None
    warmup: int | None = None
    draws: int | None = None
    thin: int | None = None
    recalibrate: bool | None = None


@dataclass(frozen=True)
class Effort:
    """A choice of `--effort`.

    prefers : the models it takes where none is named, the first that takes the layout; else the
        first of all
    lengths : by model;  others : of those that are not named
    """

    prefers: tuple[str, ...] = ()
    lengths: Mapping[str, Length] = field(default_factory=dict)
    others: Length = Length()

    def model(self, able: Sequence[str]) -> str:
        """Return the model to take of those that are able."""
        return next((name for name in self.prefers if name in able), able[0])


EFFORTS = {
    "quick": Effort(
        prefers=("mixture",),
        lengths={
            "glfm": Length(chains=4, warmup=40, draws=10, thin=1, recalibrate=False),
            "mixture": Length(chains=3, warmup=20, draws=5, thin=2, recalibrate=False),
            "clgp": Length(chains=2),
            "cnpf": Length(chains=1),
        },
        others=Length(chains=3, warmup=40, draws=10, thin=1, recalibrate=False),
    ),
    NORMAL: Effort(),
    "thorough": Effort(
        lengths={"clgp": Length(chains=16), "cnpf": Length(chains=16)},
        others=Length(chains=32, draws=30),
    ),
}


def effort_of(sampling: Sampling) -> Effort:
    """Return the effort that is asked for.

    Raises
    ------
    UsageError
        There is none of that name.
    """
    name = sampling.effort or NORMAL
    if name not in EFFORTS:
        raise UsageError("--effort", value=name, expected=" or ".join(EFFORTS))
    return EFFORTS[name]


def paced(sampling: Sampling, model: str) -> Sampling:
    """Return the options with what the effort says of a model's length; what is said stands."""
    effort = effort_of(sampling)
    length = effort.lengths.get(model, effort.others)
    said = {name: getattr(sampling, name) for name in ("chains", "warmup", "draws", "thin")}
    more = {n: getattr(length, n) for n, value in said.items() if value is None}
    settings = dict(sampling.settings or {})
    if length.recalibrate is not None:
        settings = {"recalibrate": length.recalibrate, **settings}
    return dataclasses.replace(sampling, **more, settings=settings or None, effort=None)
