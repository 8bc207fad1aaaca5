"""Write messy.csv: a small invented table with every habit that trips table-completion tools.

    cd sample_data && python make_messy.py

Needs numpy. The columns depend on one hidden wealth and on the city, so that there is something
to find; a fifth of the cells is then hidden at random, each column with a code of its own.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

N_ROWS = 400
SEED = 7
HIDDEN = 0.2
CITIES = ("Oslo", "Paris", "Rome", "São Paulo")
CITY_CODES = ("10", "20", "30", "45")  # the same cities, as a data base would number them
CITY_SHARE = (0.2, 0.35, 0.3, 0.15)
CITY_WARMTH = np.array([2.0, 11.5, 16.0, 21.0])  # degrees C
CITY_WEALTH = np.array([0.6, 0.2, -0.1, -0.7])  # on the scale of log income
GRADES = np.array(["low", "mid", "high"])
GAP = {
    "income": "",
    "visits": "-1",
    "grade": "?",
    "city": "",
    "city_code": "-1",
    "temperature": "NA",
}


def draw_columns(rng: np.random.Generator) -> dict[str, list[str]]:
    """Return the complete table as text, without its id."""
    city = rng.choice(len(CITIES), size=N_ROWS, p=CITY_SHARE)
    wealth = CITY_WEALTH[city] + 0.7 * rng.standard_normal(N_ROWS)
    income = np.exp(10.0 + wealth + 0.25 * rng.standard_normal(N_ROWS))
    visits = rng.poisson(np.exp(1.2 - 0.7 * wealth))
    score = 1.3 * wealth + 0.5 * rng.standard_normal(N_ROWS)
    temperature = CITY_WARMTH[city] + 2.5 * rng.standard_normal(N_ROWS)
    return {
        "income": [f"{value:.2f}" for value in income],
        "visits": [str(value) for value in visits],
        "grade": list(GRADES[np.digitize(score, (-0.6, 0.7))]),
        "city": [CITIES[at] for at in city],
        "city_code": [CITY_CODES[at] for at in city],
        "temperature": [f"{value:.1f}" for value in temperature],
    }


def main() -> None:
    """Draw the table, hide cells, and write it beside this script."""
    rng = np.random.default_rng(SEED)
    columns = draw_columns(rng)
    for name, cells in columns.items():
        hidden = rng.random(N_ROWS) < HIDDEN
        columns[name] = [
            GAP[name] if gone else cell for cell, gone in zip(cells, hidden, strict=True)
        ]
    columns = {"id": [f"P{row:03d}" for row in range(1, N_ROWS + 1)], **columns}
    target = Path(__file__).with_name("messy.csv")
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


if __name__ == "__main__":
    main()
