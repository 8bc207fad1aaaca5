"""Chained extra trees, as missForest chains random forests: every column on the others, in turn.

    python extra_trees.py INPUT TYPES OUTPUT SEED

Columns with the fewest gaps come first. It ends when the completed cells change more than in the
round before, or after ten rounds [Stekhoven and Buehlmann, Bioinformatics 28 (2012)].
"""

from __future__ import annotations

import numpy as np
from matrix import Column, Matrix, arguments, read
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

TREES, ROUNDS = 100, 10


def start(matrix: Matrix) -> np.ndarray:
    """Return the matrix with means and most frequent levels in the gaps."""
    filled = matrix.values.copy()
    for column in matrix.columns:
        part = filled[:, column.start : column.end]
        center = np.nanmean(part, axis=0)
        if column.kind == "categorical":
            center = (np.arange(center.size) == np.argmax(center)).astype(float)
        part[np.isnan(part[:, 0])] = center
    return filled


def complete(matrix: Matrix, column: Column, filled: np.ndarray, seed: int) -> np.ndarray:
    """Return what trees grown on the rows that know a column put into its gaps."""
    inside = slice(column.start, column.end)
    others = np.delete(filled, inside, axis=1)
    gaps = np.isnan(matrix.values[:, column.start])
    known, goal = others[~gaps], matrix.values[~gaps, inside]
    if column.kind == "categorical":
        forest = ExtraTreesClassifier(TREES, random_state=seed, n_jobs=1)
        forest.fit(known, np.argmax(goal, axis=1))
        return (forest.predict(others[gaps])[:, None] == np.arange(goal.shape[1])).astype(float)
    forest = ExtraTreesRegressor(TREES, random_state=seed, n_jobs=1, max_features=1 / 3)
    forest.fit(known, goal[:, 0])
    return forest.predict(others[gaps])[:, None]


def main() -> None:
    given = arguments()
    matrix = read(given.input, given.types, drop_last=False)
    spread = np.maximum(np.nanstd(matrix.values, axis=0), 1e-12)
    missing = np.isnan(matrix.values)
    order = sorted(matrix.columns, key=lambda column: int(missing[:, column.start].sum()))
    filled, last = start(matrix), np.inf
    for turn in range(ROUNDS):
        before = filled.copy()
        for i, column in enumerate(order):
            gaps = missing[:, column.start]
            if gaps.any() and not gaps.all():
                inside = slice(column.start, column.end)
                filled[gaps, inside] = complete(
                    matrix, column, filled, given.seed + turn * len(order) + i
                )
        change = float(np.sum(((filled - before) / spread)[missing] ** 2))
        if change >= last:
            filled = before
            break
        last = change
    matrix.put_back(filled).to_csv(given.output, index=False)


if __name__ == "__main__":
    main()
