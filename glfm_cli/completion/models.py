"""Which model a run is of: the one that is named, else the first that does what is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from glfm_cli.errors import UsageError
from glfm_cli.latent import ELSEWHERE, MODELS
from glfm_cli.latent.capabilities import Candidates, LeavesTypes, LimitedTypes, RefusesTypes
from glfm_cli.latent.model import LatentModel
from glfm_cli.links import LinkConfig
from glfm_cli.options import Sampling
from glfm_cli.schema.phrases import did_you_mean


@dataclass(frozen=True)
class Asked:
    """What is asked of a model that nobody names.

    layout : of the cells, one of those of models
    kinds : the types of a table's columns; none where they are not known yet
    alone : whether draws are to be those of one model
    """

    layout: str
    kinds: Sequence[str] = ()
    alone: bool = False


def named(sampling: Sampling, asked: Asked) -> Sampling:
    """Return the options with a model: the first in `MODELS` that does what is asked.

    One of several candidates only where they are left, and it has all settings that are set.
    """
    if sampling.model is not None:
        return sampling
    able = (name for name in _able(asked.layout) if _does(MODELS[name], asked, sampling))
    return replace(sampling, model=next(able))


def knows(model: LatentModel, settings: Collection[str]) -> bool:
    """Return whether settings are all of a model, or of links."""
    configs: tuple[Any, ...] = (model.Config, LinkConfig)
    return {one.name for config in configs for one in fields(config)} >= set(settings)


def _does(model: LatentModel, asked: Asked, sampling: Sampling) -> bool:
    """Return whether a model does what is asked."""
    if isinstance(model, Candidates):
        left = not asked.alone and model.several(asked.kinds)
        return left and knows(model, sampling.settings or {})
    left = isinstance(model, LeavesTypes) and bool(model.leaves & set(asked.kinds))
    return not (left or refused(model, asked.kinds))


def refused(model: LatentModel, kinds: Sequence[str]) -> list[str]:
    """Return those of some types of columns that a model does not take."""
    if isinstance(model, RefusesTypes):
        return [kind for kind in kinds if kind in model.refuses]
    if isinstance(model, LimitedTypes):
        return [kind for kind in kinds if kind not in model.types]
    return []


def _able(layout: str) -> Iterator[str]:
    return (name for name, model in MODELS.items() if layout in model.layouts)


def model_of(sampling: Sampling, layout: str) -> LatentModel:
    """Return the latent model that is asked for, else the first that takes the layout.

    Raises UsageError: there is no such model, or it does not take the layout.
    """
    name = named(sampling, Asked(layout)).model
    assert name is not None
    if name in ELSEWHERE:
        why, hint = ELSEWHERE[name]
        raise UsageError(f"--model {name} {why}", hint=hint)
    if name not in MODELS:
        near = did_you_mean(name, MODELS)
        raise UsageError("--model", value=name, expected=" or ".join(MODELS), hint=near)
    if layout not in MODELS[name].layouts:
        what = {"sparse": "triplets", "counts": "triplets whose absent pairs are zeros"}
        hint = "A types file with roles row, column and value describes a matrix."
        if "counts" in MODELS[name].layouts:
            hint = "Its values are counts, with `absent: zero` in their entry of the types file."
        raise UsageError(
            f"--model {name} does not take {what.get(layout, 'tables')}",
            expected=" or ".join(f"--model {other}" for other in _able(layout)),
            hint=hint,
        )
    return MODELS[name]
