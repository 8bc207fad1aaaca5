"""`glfm diagnose` of a classifier that was kept: its starts, and how many experts are believed."""

from __future__ import annotations

from typing import Any

import typer

from glfm_cli.cli import options
from glfm_cli.cli.console import Console, ExitStatus

TAKEN = ("fit", "strict", "as_json", "quiet")


def run(ctx: typer.Context, fit: str, *, strict: bool, as_json: bool) -> int:
    """Show how a classifier was fitted, and what it believes.

    Raises UsageError: an option has no place here; StoreError: the folder is damaged.
    """
    from glfm_cli.classification import load_trained
    from glfm_cli.classification.belief import believed, in_words
    from glfm_cli.classification.result import fit_summary

    console: Console = ctx.obj
    options.refuse(ctx, TAKEN, "a classifier is diagnosed", "--json and --strict have one")
    trained = load_trained(fit)
    summary, (after, before) = fit_summary(trained.classifier), believed(trained.classifier)
    if as_json:
        facts = {"target": trained.target.column.name, "labelled": trained.n_labelled}
        facts |= {"rows": trained.n_rows, "fit": summary}
        facts |= {"posterior": after.to_dict(), "prior": before.to_dict()}
        console.result_as_json(facts)
    else:
        console.result("\n".join([f"{fit}: {_fitted(summary)}", *in_words(after, before)]) + "\n")
    if strict and not summary["converged"]:
        console.warn("--strict: the fit has not converged")
        return ExitStatus.NOT_CONVERGED
    return ExitStatus.OK


def _fitted(summary: dict[str, Any]) -> str:
    """Return how the fit went, in a few lines."""
    how = "converged" if summary["converged"] else "not converged"
    if "draws" in summary:
        return f"{how}, {summary['draws']} draws of {summary['sweeps']} sweeps a chain"
    weights = ", ".join(f"{weight:.2f}" for weight in summary["averaged"])
    bounds = ", ".join(f"{bound:.1f}" for bound in summary["starts"] if bound is not None)
    lines = (
        f"{how} after {summary['iterations']} iterations\n"
        f"Bounds of the starts: {bounds}\n"
        f"Weights in predictions, by held-out labels: {weights}"
    )
    if "trees" in summary:
        beside = f"{summary['trees']:.2f} and {summary['shares']:.2f}"
        lines += f"\nWeights of trees and of the labels' shares, likewise: {beside}"
    return lines
