"""What rows share, in words for the terminal and the page."""

from __future__ import annotations

import math

from glfm_cli.exploration.shared import OWN, SHARED, SharedByRows, SharedSeries
from glfm_cli.exploration.words import percent, with_error

PARTS = "Parts of the variance of each column, on the scale of its link"
SERIES = "Time series that columns share"
MOVES = "sds by which it moves columns"
NO_SERIES = "No shared time series is clearly above 0."
MOST = 6  # columns named for a series


def part_rows(found: SharedByRows) -> tuple[list[str], list[list[str]]]:
    """Return the headings behind the columns' names, and a row a column."""
    header, cells = ["in time", "explained by others"], [found.in_time, (found.told, found.told_sd)]
    if found.clock is None:
        header, cells = [], []
    for p, name in enumerate(found.parts):
        if name not in (SHARED, OWN):
            header.append(name)
            cells.append((found.share[:, p], found.share_sd[:, p]))
    columns = [list(map(with_error, mean, sd)) for mean, sd in cells]
    return header, [[name, *row] for name, *row in zip(found.names, *columns, strict=True)]


def series_rows(found: SharedByRows) -> list[list[str]]:
    """Return name, share, stability and words of each series."""
    return [
        [
            one.name,
            with_error(one.share, one.share_sd),
            "" if math.isnan(one.stability) else percent(one.stability),
            in_words(found, one),
        ]
        for one in found.series
    ]


def in_words(found: SharedByRows, one: SharedSeries) -> str:
    """Return the latent columns that a series surely moves, with how many sds for one of it."""
    rows, leading = found.columns.to_pylist(), one.leading()
    texts = []
    for s in leading[:MOST]:
        name = "=".join(str(part) for part in rows[s].values() if part is not None)
        texts.append(f"{name} {one.loading[s]:+.2f}".replace("-", "−"))
    more = len(leading) - MOST
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
