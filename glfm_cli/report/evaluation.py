"""The page of an evaluation."""

from __future__ import annotations

import os

from glfm_cli.evaluation import Evaluation
from glfm_cli.evaluation.grids import HEADLINES, Grid, column_grid, headline_grids, middle, opening
from glfm_cli.plots import embedded, plot_evaluation
from glfm_cli.report.page import bullets, figure, heading, page, paragraph, save, table

_EXPLAINED = (
    "Error: root mean square error over the column's range for numbers, share of wrong levels for "
    "categories, rank distance over the number of levels less one for ordered levels; mean over "
    "columns. Intervals of differences are Student intervals over the repeats; a method is marked "
    "as best only where its difference to each of the others has an interval without zero."
)


def write_evaluation(evaluation: Evaluation, path: str | os.PathLike[str], *, name: str) -> None:
    """Write an evaluation as one HTML file that needs no other.

    path : replaced only when complete
    name : of the table, in the title

    Raises OutputError: the file cannot be written.
    """
    drawn = plot_evaluation(evaluation)
    parts = [paragraph(opening(evaluation)), *_facts(evaluation)]
    parts += [figure(embedded(drawn), "Scores by share hidden and by column")]
    parts += [heading("All columns together"), *map(_table, headline_grids(evaluation))]
    rate = middle(evaluation.rates)
    by_column = [column_grid(evaluation, headline, rate) for headline in HEADLINES]
    parts += [heading("Each column"), *(_table(grid) for grid in by_column if grid is not None)]
    parts += [paragraph(_EXPLAINED, faint=True)]
    save(page(f"How far completed cells of {name} can be trusted", parts), path)


def _facts(evaluation: Evaluation) -> list[str]:
    data = evaluation.data
    missing = sum(int((~e.observed).sum()) for e in data.columns)
    facts = [
        f"{data.n_rows} rows, {len(data.columns)} modelled columns, {missing} cells missing",
        f"seed {evaluation.seed}",
    ]
    if evaluation.stopped:
        facts.append(f"{evaluation.stopped}: only {len(evaluation.fits)} fits were made")
    return [bullets([*facts, *evaluation.warnings])]


def _table(grid: Grid) -> str:
    return table(grid.header, grid.rows, grid.title)
