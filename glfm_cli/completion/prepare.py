"""From a table, its types and the options of a run to what is sampled, everything checked."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import pyarrow as pa

from glfm_cli.encoding import Data, encode
from glfm_cli.errors import UsageError
from glfm_cli.inference.chain import Problem
from glfm_cli.inference.sampling import Plan
from glfm_cli.latent import MODELS
from glfm_cli.latent.model import LatentModel
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.schema import Schema, read_schema
from glfm_cli.settings import apply_settings

MODEL = "glfm"
CHAINS = 8
MORE_CHAINS = 16
FEW_CELLS = 40_000  # observed, up to which there are more chains
WARMUP = 100
DRAWS = 20
THIN = 2
SEED = 0


def prepare(
    table: pa.Table,
    types: Schema | Mapping[str, Any] | str | os.PathLike[str],
    *,
    model: str,
    chains: int | None,
    warmup: int,
    draws: int,
    thin: int,
    seed: int,
    settings: Mapping[str, object] | None,
    file: str | None = None,
    data: Data | None = None,
) -> tuple[Problem, Data, Plan]:
    """Check everything, encode the table and calibrate the links; nothing is sampled yet.

    The options are those of `impute`; `file` names the table in messages; `data` is the table
    when it has been encoded already.
    """
    plan = Plan(CHAINS if chains is None else chains, warmup, draws, thin, seed)
    check_plan(plan)
    latent = _model(model)
    if latent.kind == "ascent":
        plan = _of_ascent(plan, model)
    configs = apply_settings(
        {"model": latent.Config(), "links": LinkConfig()}, dict(settings or {})
    )
    if data is None:
        data = encode(table, as_schema(types), file=file)
    if chains is None:
        plan = dataclasses.replace(plan, chains=chains_for(data))
    links_config = configs["links"]
    if "first_threshold_fixed" not in (settings or {}):  # without a bias it must be free
        bias = getattr(configs["model"], "bias", False)
        links_config = dataclasses.replace(links_config, first_threshold_fixed=bias)
    links = tuple(make_link(encoded, links_config) for encoded in data.columns)
    xs = tuple(encoded.x for encoded in data.columns)
    problem = Problem(latent, configs["model"], links, xs, links_config)
    return problem, data, plan


def chains_for(data: Data) -> int:
    """Return how many chains complete a table when nobody says.

    Chains find different features, and estimates average over them. The error of a table averages
    over its cells besides; a small one has few, and its chains are cheap.
    """
    cells = sum(int(encoded.observed.sum()) for encoded in data.columns)
    return MORE_CHAINS if cells <= FEW_CELLS else CHAINS


def _of_ascent(plan: Plan, model: str) -> Plan:
    """Return the plan of an ascent, when nothing was said that it has no use for."""
    if (plan.warmup, plan.draws, plan.thin) == (WARMUP, DRAWS, THIN):
        return Plan.of_ascent(plan.chains, plan.seed)
    if (plan.warmup, plan.draws) == (0, 1):
        return plan
    raise UsageError(
        f"--warmup, --draws and --thin say how long to sample, and '{model}' is fitted otherwise",
        hint="Leave them out; --chains says how many restarts there are.",
    )


def check_plan(plan: Plan) -> None:
    """Raise UsageError when a number that says how long to sample is out of range."""
    for name, least in (("chains", 1), ("warmup", 0), ("draws", 1), ("thin", 1), ("seed", 0)):
        value = getattr(plan, name)
        if not isinstance(value, Integral) or value < least:
            raise UsageError(name, value=value, expected=f"a whole number from {least}")


def _model(name: str) -> LatentModel:
    if name not in MODELS:
        close = difflib.get_close_matches(name, MODELS, n=1)
        raise UsageError(
            "--model",
            value=name,
            expected=" or ".join(MODELS),
            hint=f"Did you mean '{close[0]}'?" if close else None,
        )
    return MODELS[name]


def as_schema(types: Schema | Mapping[str, Any] | str | os.PathLike[str]) -> Schema:
    """Return the schema that a types file, its content or its path describes."""
    if isinstance(types, Schema):
        return types
    if isinstance(types, Mapping):
        return Schema.from_dict(types)
    return read_schema(Path(types))
