"""The summary of an evaluation as text for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from glfm_cli.evaluation import Evaluation
from glfm_cli.evaluation.scoring import ALL
from glfm_cli.evaluation.summary import Line

# Score, heading, which way is better, digits after the point.
HEADLINES = (
    ("error", "Error", "lower is better", 4),
    ("log_score", "Log score per cell", "higher is better", 3),
    ("ncrps", "CRPS over the column's range, numbers", "lower is better", 4),
    ("coverage_95", "Share inside intervals of 95 %", "0.95 is right", 3),
    ("calibration", "Calibration error of level probabilities", "lower is better", 3),
    ("seconds", "Seconds a fit", "", 2),
)
COMPARED = ("error", "log_score")
_BETWEEN = "   "


def summary_text(evaluation: Evaluation) -> str:
    """Return the headline scores of all columns together: methods down, rates across."""
    parts = [_opening(evaluation)]
    for score, heading, better, digits in HEADLINES:
        lines = [
            line
            for line in evaluation.lines
            if line.what.score == score and line.what.scope == ALL
        ]  # fmt: skip
        if not lines or (score == "seconds" and all(math.isnan(line.mean) for line in lines)):
            continue
        title = f"{heading} ({better})" if better else heading
        parts.append(_block(title, lines, evaluation, digits))
        if score in COMPARED and evaluation.repeats > 1 and len(evaluation.methods) > 1:
            parts.append(_differences(heading, lines, evaluation, digits))
    return "\n".join(part for part in parts if part)


def _opening(evaluation: Evaluation) -> str:
    n = evaluation.repeats
    shares = ", ".join(percent(rate) for rate in evaluation.rates)
    sets = "once" if n == 1 else f"{n} times"
    lines = [f"{shares} of the cells hidden {sets} ({evaluation.mechanism})."]
    if n > 1:
        lines.append(
            "Mean and standard error; * better than every other method by more than noise."
        )
    return "\n".join(lines) + "\n"


def _block(title: str, lines: Sequence[Line], evaluation: Evaluation, digits: int) -> str:
    cells = {(line.method, line.rate): _mean(line, digits) for line in lines}
    return _grid(title, cells, evaluation)


def _differences(heading: str, lines: Sequence[Line], evaluation: Evaluation, digits: int) -> str:
    """Return the paired differences to the reference, with their intervals."""
    cells = {
        (line.method, line.rate): _difference(line, digits)
        for line in lines
        if line.method != evaluation.reference and not math.isnan(line.difference)
    }
    if not cells:
        return ""
    return _grid(
        f"{heading}: difference to {evaluation.reference}, 95 % interval", cells, evaluation
    )


def _mean(line: Line, digits: int) -> str:
    text = f"{line.mean:.{digits}f}"
    if not math.isnan(line.se):
        text += f" ±{line.se:.{digits}f}"
    return text + ("*" if line.best else "")


def _difference(line: Line, digits: int) -> str:
    text = f"{line.difference:+.{digits}f}"
    if math.isnan(line.lower):
        return text
    return f"{text} [{line.lower:+.{digits}f}, {line.upper:+.{digits}f}]"


def _grid(title: str, cells: dict[tuple[str, float], str], evaluation: Evaluation) -> str:
    """Return a table of text, methods down and rates across."""
    methods = [m for m in evaluation.methods if any(key[0] == m for key in cells)]
    head = ["", *(percent(rate) for rate in evaluation.rates)]
    rows = [[m, *(cells.get((m, rate), "-") for rate in evaluation.rates)] for m in methods]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [title]
    for row in [head, *rows]:
        line = _BETWEEN.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"  {line}".rstrip())
    return "\n".join(lines) + "\n"


def percent(rate: float) -> str:
    """Return a share in percent, as short as it can be said."""
    return f"{100 * rate:.3g} %"
