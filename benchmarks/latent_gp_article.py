"""The tables of the CLGP article: perplexity of hidden cells, beside other models of this package.

    python benchmarks/latent_gp_article.py FOLDER [--tables breast,digits,grammar] [--splits 3]
        [--models clgp,linear,glfm,mixture,bsvd] [--chains N] [--set kernel=rbf]
        [--out latent_gp_article.jsonl]

FOLDER holds wisconsin_bc.parquet, alphadigits_10x8.parquet and clgp_pcfg_strings.parquet. All
columns are categorical; rows with hidden cells are part of the fit, their other cells observed.

- `breast`: 683 complete rows, one of the ten cells of a quarter of them hidden;
- `digits`: 30 images a class complete, 20 % of the pixels of the nine others hidden;
- `grammar`: windows of three of 1,000 strings, one position hidden in those of a fifth of them.

Perplexity is exp(-mean log p) over hidden cells, 1 at best. `linear` is the latent Gaussian model,
`clgp` with a linear kernel; `bigram` the mean over a row's other cells of level frequencies given
them. Places of `clgp`, to which alone `--set` goes, have two dimensions. Results go to a file, one
line each, which a later run goes on with. `--figure PNG` draws images along the map of `digits`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from glfm_cli import Completion, impute

Columns = dict[str, list[str]]
IMAGES = 30  # of a class that are complete
PIXELS, STRINGS, TESTED = 0.2, 0.2, 0.25  # shares


def breast(folder: Path, rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Return levels as text by column, and which cells (N, D) are hidden."""
    table = pq.read_table(folder / "wisconsin_bc.parquet").drop_columns(["Id"])
    rows = [row for row in table.to_pylist() if None not in row.values()]
    columns = {name: [str(row[name]) for row in rows] for name in table.column_names}
    hidden = np.zeros((len(rows), len(columns)), dtype=bool)
    test = rng.permutation(len(rows))[: round(TESTED * len(rows))]
    hidden[test, rng.integers(0, len(columns), test.size)] = True
    return columns, hidden


def digits(folder: Path, rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Return pixels, and which are hidden."""
    table = pq.read_table(folder / "alphadigits_10x8.parquet")
    label = np.array(table["label"].to_pylist())
    table = table.drop_columns(["label"])
    columns = {name: [str(int(x)) for x in table[name].to_pylist()] for name in table.column_names}
    hidden = rng.random((label.size, len(columns))) < PIXELS
    for one in np.unique(label):
        hidden[rng.permutation(np.flatnonzero(label == one))[:IMAGES]] = False
    return columns, hidden


def grammar(folder: Path, rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Return windows of three, and which positions are hidden."""
    table = pq.read_table(folder / "clgp_pcfg_strings.parquet")
    strings = [str(x) for x in table[table.column_names[-1]].to_pylist()]
    tested = set(rng.permutation(len(strings))[: round(STRINGS * len(strings))].tolist())
    windows, hidden = [], []
    for i, string in enumerate(strings):
        padded = "ss" + string.strip("sS") + "SS"
        for start in range(len(padded) - 2):
            windows.append(padded[start : start + 3])
            hidden.append(np.arange(3) == (rng.integers(3) if i in tested else -1))
    columns = {f"c{j}": [window[j] for window in windows] for j in range(3)}
    return columns, np.array(hidden)


TABLES = {"breast": breast, "digits": digits, "grammar": grammar}


def completed(
    columns: Columns, hidden: np.ndarray, model: str, chains: int | None, given: dict[str, str]
) -> Completion:
    """Return the completion by a model; `given` are settings of `clgp`."""
    levels = {name: sorted(set(values)) for name, values in columns.items()}
    types = {"columns": {n: {"type": "categorical", "levels": r} for n, r in levels.items()}}
    table = pa.table(
        {
            name: [None if gap else x for x, gap in zip(values, hidden[:, d], strict=True)]
            for d, (name, values) in enumerate(columns.items())
        }
    )
    settings: dict[str, Any] = {}
    if model in ("clgp", "linear"):
        settings = {"dimensions": 2, **(given if model == "clgp" else {})}
    if model == "linear":
        model, settings = "clgp", {**settings, "kernel": "linear"}
    return impute(table, types, model=model, chains=chains, threads=1, seed=1, settings=settings)


def perplexity(columns: Columns, hidden: np.ndarray, done: Completion) -> float:
    """Return that of the hidden cells."""
    logs = []
    for d, (name, part) in enumerate(zip(columns, done.columns, strict=True)):
        rows = np.flatnonzero(hidden[:, d])
        if rows.size:
            p = part.marginal.probabilities
            assert p is not None
            levels = sorted(set(columns[name]))
            codes = [levels.index(columns[name][row]) for row in rows]
            logs.append(np.log(p[np.arange(rows.size), codes]))
    return float(np.exp(-np.mean(np.concatenate(logs))))


def bigram(columns: Columns, hidden: np.ndarray) -> float:
    """Return that of the mean over other cells e of (n(y_d, y_e) + 1) / (n(y_e) + R)."""
    names = list(columns)
    codes = np.stack([np.unique(columns[n], return_inverse=True)[1] for n in names], axis=1)
    logs = []
    for row, d in np.argwhere(hidden):
        p = []
        for e in np.flatnonzero(~hidden[row]):
            both = ~hidden[:, d] & ~hidden[:, e] & (codes[:, e] == codes[row, e])
            n = np.sum(codes[both, d] == codes[row, d])
            p.append((n + 1.0) / (both.sum() + codes[:, d].max() + 1.0))
        logs.append(np.log(np.mean(p)))
    return float(np.exp(-np.mean(logs)))


def figure(done: Completion, path: Path) -> None:
    """Draw the images that are expected along the map of all digits and letters."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    draw, model = done.posterior.chains[0][-1].latent, done.posterior.model
    low, high = np.quantile(model.places(draw)[0], [0.02, 0.98], axis=0)
    x, y = (np.linspace(a, b, 14) for a, b in zip(low, high, strict=True))
    at = np.stack(np.meshgrid(x, y[::-1]), axis=2).reshape(-1, 2)
    law = model.law_at(draw, at)
    ink = np.stack([law.column(d).p[:, 1] for d in range(len(done.columns))], axis=1)
    drawing = Figure(figsize=(7.0, 8.0), layout="constrained")
    FigureCanvasAgg(drawing)
    for i, image in enumerate(ink.reshape(-1, 10, 8)):
        axes = drawing.add_subplot(14, 14, i + 1)
        axes.imshow(image, cmap="gray_r", vmin=0.0, vmax=1.0)
        axes.set_axis_off()
    drawing.savefig(path, dpi=110)


def main() -> None:
    """Print a line a fit."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", default="breast,digits,grammar")
    parser.add_argument("--models", default="bigram,clgp,linear,glfm,mixture")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--chains", type=int)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--out", type=Path, default=Path("latent_gp_article.jsonl"))
    asked = parser.parse_args()
    lines = asked.out.read_text().splitlines() if asked.out.exists() else []
    done = {tuple(json.loads(line)[:-1]) for line in lines}
    given = dict(item.split("=", 1) for item in asked.settings)
    for name in filter(None, asked.tables.split(",")):
        for split in range(asked.splits):
            columns, hidden = TABLES[name](asked.folder, np.random.default_rng(split))
            for model in asked.models.split(","):
                own = asked.settings if model == "clgp" else []
                key = (name, split, " ".join([model, *own]))
                if key in done:
                    continue
                if model == "bigram":
                    found = bigram(columns, hidden)
                else:
                    fit = completed(columns, hidden, model, asked.chains, given)
                    found = perplexity(columns, hidden, fit)
                    if asked.figure and (name, model) == ("digits", "clgp"):
                        figure(fit, asked.figure)
                print(line := json.dumps([*key, round(found, 4)]), flush=True)
                with asked.out.open("a") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
