"""What to do about a diagnosis, in words."""

from __future__ import annotations

import math

from glfm_cli.diagnosis.check import MISFIT
from glfm_cli.diagnosis.result import Diagnosis
from glfm_cli.inference.diagnostics import ESS_LIMIT, RHAT_LIMIT, Flag, QuantityDiagnostics
from glfm_cli.schema import COLUMN_TYPES
from glfm_cli.store import Fit

MOST_DRAWS = 100_000  # a chain; more would not be sensible advice
MOST_NAMED = 3
VAGUE = 0.95  # relative uncertainty from which a cell is no better known than its column


def advise(result: Diagnosis, fit: Fit) -> tuple[str, ...]:
    """Return what to do next, one sentence or two each; the most pressing first."""
    said = [*_on_convergence(result, fit), *_on_features(result, fit), *_on_columns(result)]
    vague = [cell for cell in result.uncertain or () if cell.uncertainty > VAGUE]
    if vague:
        names = _named(list(dict.fromkeys(cell.column for cell in vague)))
        said.append(
            f"The least certain cells, of {names}, are as uncertain as a cell of which only the "
            "column is known, or more so: nothing in their rows helps, or the rows are unusual. "
            "Report them with their intervals, or leave them missing."
        )
    return tuple(said)


def _on_convergence(result: Diagnosis, fit: Fit) -> list[str]:
    failed = [q for q in result.diagnostics if q.gating and not q.converged()]
    if not failed:
        return ["The chains agree on every watched quantity: the draws can be used as they are."]
    plan, path = fit.plan, result.path
    if any(q.flag is Flag.BROKEN for q in failed):
        return [
            "Some quantities took values that are not finite numbers. Look for columns with "
            "extreme values, and give them `transform: rank`."
        ]
    short = any(q.flag is Flag.SHORT for q in failed)
    requested = _draws_needed(failed, plan.draws)
    more = f"`glfm impute DATA --resume {path} --draws {requested}`"
    if short:
        return [f"There are too few draws to judge by. Run more: {more}."]
    apart = [q for q in failed if q.flag is Flag.STUCK or q.rhat > RHAT_LIMIT]
    if apart:
        names = _named([result.labels[q.name] for q in apart], quoted=False)
        return [
            f"The chains do not agree on {names}. Go on first: {more}. If they still differ, begin "
            f"anew with a longer warm-up (--warmup {max(100, 3 * plan.warmup)})."
        ]
    worst = min(q.ess for q in failed if not math.isnan(q.ess))
    return [
        f"The draws are worth only {worst:.0f} independent ones where {ESS_LIMIT:g} are wanted. "
        f"Go on: {more}."
    ]


def _draws_needed(failed: list[QuantityDiagnostics], draws: int) -> int:
    """Return the draws a chain that would bring every effective size to its limit, with a margin.

    The size grows in proportion to the draws once the chains mix.
    """
    sizes = [q.ess for q in failed if math.isfinite(q.ess) and q.ess > 0]
    factor = 1.2 * ESS_LIMIT / min(sizes) if sizes else 4.0
    requested = max(2.0, min(factor, 50.0)) * draws
    step = 10 ** max(1, len(str(int(requested))) - 2)
    return int(min(MOST_DRAWS, math.ceil(requested / step) * step))


def _on_features(result: Diagnosis, fit: Fit) -> list[str]:
    for quantity, what, setting in (
        ("features", "features", "max_features"),
        ("rank", "components", "max_components"),
    ):
        cap, trace = getattr(fit.config, setting, None), result.traces.get(quantity)
        if cap and trace is not None and trace.max() >= cap:
            return [
                f"The number of {what} reached its cap of {cap}. Begin anew with --set "
                f"{setting}={2 * cap}."
            ]
    return []


def _on_columns(result: Diagnosis) -> list[str]:
    misfits = [check for check in result.checks or () if not check.fits]
    if not misfits:
        return []
    numbers = [c.column for c in misfits if not c.levels]
    said = []
    if numbers:
        said.append(
            f"The model does not make columns like {_named(numbers)} (p < {MISFIT:g}). Try "
            "`transform: rank` for them in the types file, or give values that stand for "
            "something else (such as 999) as missing."
        )
    levels = [c.column for c in misfits if c.levels and not COLUMN_TYPES[c.type].ordered]
    ordered = [c.column for c in misfits if c.levels and COLUMN_TYPES[c.type].ordered]
    if levels:
        said.append(
            f"The model does not make the levels of {_named(levels)} as often as they occur "
            f"(p < {MISFIT:g}). Join levels that are rare, or run more draws."
        )
    if ordered:
        said.append(
            f"The model does not make the levels of {_named(ordered)} as often as they occur "
            f"(p < {MISFIT:g}). Check the order of the levels, or take type categorical."
        )
    return said


def _named(names: list[str], *, quoted: bool = True) -> str:
    shown = [f"'{name}'" if quoted else name for name in names[:MOST_NAMED]]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")
