"""Numbers that are one and the same in all rows of a level of another column."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glfm_cli.guess.hints.coded import Coded
from glfm_cli.guess.verdict import Verdict
from glfm_cli.io.numerals import Numerals
from glfm_cli.schema.phrases import is_number
from glfm_cli.schema.text import quoted, scalar

LEAST_ROWS = 20  # of a level, in all of which a number is the same
MOST_ELSEWHERE = 0.1  # share of that number in the rows of other levels


def only_if(
    number: Coded,
    written: Numerals,
    by_level: dict[int, tuple[list[str], NDArray[np.int64]]],
    verdicts: Sequence[Verdict],
) -> list[str]:
    """Return the `only_if` of a column that is one number in all rows of a level of another."""
    texts, values = number
    if not len(texts):
        return []
    common = int(np.argmax(np.bincount(values[values >= 0], minlength=len(texts))))
    text = written.read(texts.slice(common, 1)).plain[0].as_py() or texts[common].as_py()
    seen, same = values >= 0, values == common
    found = []
    for i, (levels, of_row) in by_level.items():
        both = seen & (of_row >= 0)
        rows, hits = (np.bincount(of_row[m], minlength=len(levels)) for m in (both, both & same))
        rest, others = rows.sum() - rows, hits.sum() - hits
        fits = (rows >= LEAST_ROWS) & (hits == rows) & (rest >= LEAST_ROWS)
        fits &= others <= MOST_ELSEWHERE * rest
        if verdicts[i].column.numeric:  # of which only 0 may say that there is nothing
            fits[1:] = False
        elif fits.any():  # each other level may have a number of its own, as a town its population
            pairs = np.unique(np.stack([of_row[both], values[both]]), axis=1)
            kinds = np.bincount(pairs[0], minlength=len(levels))
            fits &= bool(np.any(kinds[hits < rows] > 1))
        found += [(int(rows[k]), i, levels[k]) for k in np.flatnonzero(fits)]
    if not found or not is_number(text):
        return []
    n, i, level = max(found)
    name = verdicts[i].column.name
    word = name if name.isidentifier() else f"`{name}`"
    condition = f"{word} != {json.dumps(level, ensure_ascii=False)}"
    if verdicts[i].column.numeric:
        condition = f"{word} > 0"
    if not re.fullmatch(r'\w+ != "[\w ]+"', condition):
        condition = quoted(condition)
    entry = f"only_if: {condition}, otherwise: {quoted(text)}"
    return [
        f"{text} in all {n} rows where {name} is {scalar(level)} and hardly elsewhere; "
        f"if that must be so: {entry}"
    ]
