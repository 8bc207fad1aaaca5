"""What to do about a diagnosis, in words."""

from __future__ import annotations

from shlex import quote

from glfm_cli.diagnosis.check import MISFIT
from glfm_cli.diagnosis.result import Diagnosis
from glfm_cli.inference.diagnostics import Flag
from glfm_cli.schema import COLUMN_TYPES
from glfm_cli.store import Fit

MOST_NAMED = 3
VAGUE = 0.95  # relative uncertainty from which a cell is no better known than its column


def advise(result: Diagnosis, fit: Fit) -> tuple[str, ...]:
    """Return what to do next, one sentence or two each; the most pressing first."""
    advice = [*_on_precision(result, fit), *_on_features(result, fit), *_on_columns(result)]
    vague = [cell for cell in result.uncertain or () if cell.uncertainty > VAGUE]
    if vague:
        names = _named(list(dict.fromkeys(cell.column for cell in vague)))
        advice.append(
            f"The least certain cells, of {names}, are as uncertain as if only the distribution of "
            "the column were known, or more: nothing in their rows helps, or the rows are unusual. "
            "Report them with their intervals, or leave them missing."
        )
    return tuple(advice)


def _on_precision(result: Diagnosis, fit: Fit) -> list[str]:
    if any(q.flag is Flag.BROKEN for q in result.diagnostics):
        return [
            "Some quantities took values that are not finite numbers. Look for columns with "
            "extreme values, and give them `transform: rank`."
        ]
    advice, precision = [], result.precision
    if precision is not None and precision.good:
        advice.append("Estimates are precise enough: they can be used as they are.")
    elif precision is not None and precision.chains_needed > precision.chains:
        advice.append(
            f"Continue with more chains: `glfm impute DATA --resume {quote(str(result.path))} "
            f"--chains {precision.chains_needed}`."
        )
    elif precision is not None:
        longer = max(100, 3 * fit.plan.warmup)
        advice.append(f"Start again with a longer warm-up (--warmup {longer}).")
    apart = [q for q in result.diagnostics if q.gating and not q.converged()]
    if apart and result.diagnostics.bound_converged is None:
        names = _named([result.labels[q.name] for q in apart], quoted=False)
        advice.append(
            f"The chains differ in {names}. Estimates average over them; if you interpret "
            "single features, use those that many draws share (stability in `glfm explore`)."
        )
    return advice


def _on_features(result: Diagnosis, fit: Fit) -> list[str]:
    for quantity, what, setting in (
        ("features", "features", "max_features"),
        ("rank", "components", "max_components"),
    ):
        cap, trace = getattr(fit.config, setting, None), result.traces.get(quantity)
        if cap and trace is not None and trace.max() >= cap:
            return [
                f"The number of {what} reached its cap of {cap}. Start again with --set "
                f"{setting}={2 * cap}."
            ]
    return []


def _on_columns(result: Diagnosis) -> list[str]:
    misfits = [check for check in result.checks or () if not check.fits]
    if not misfits:
        return []
    numbers = [c.column for c in misfits if not c.levels]
    advice = []
    if numbers:
        advice.append(
            f"The model does not reproduce {_named(numbers)} (p < {MISFIT:g}). Try "
            "`transform: rank` for them in the types file, or list codes among the "
            "values (such as 999) as missing."
        )
    levels = [c.column for c in misfits if c.levels and not COLUMN_TYPES[c.type].ordered]
    ordered = [c.column for c in misfits if c.levels and COLUMN_TYPES[c.type].ordered]
    if levels:
        advice.append(
            f"The model does not reproduce how often the levels of {_named(levels)} occur "
            f"(p < {MISFIT:g}). Merge rare levels, or run more draws."
        )
    if ordered:
        advice.append(
            f"The model does not reproduce how often the levels of {_named(ordered)} occur "
            f"(p < {MISFIT:g}). Check the order of the levels, or take type categorical."
        )
    return advice


def _named(names: list[str], *, quoted: bool = True) -> str:
    shown = [f"'{name}'" if quoted else name for name in names[:MOST_NAMED]]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")
