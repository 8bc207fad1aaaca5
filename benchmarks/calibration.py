"""How well calibrated are completed cells? Hides observed cells, completes, compares.

    python benchmarks/calibration.py FOLDER [--rate 0.3] [--seed 0] [--tables a,b] [--model glfm]
        [--out FILE]

For every NAME.csv(.gz) with NAME.types.yaml in FOLDER (`sample_data` by default): hide a share of
the observed cells completely at random and complete the table. Printed are, without recalibration
and with it, the mean log score a cell, overconfidence (the mean probability of the likeliest level
less the share of such levels that are right), and the shares of numbers inside central intervals
of 50 and 95 %. A value that a forecast gives a probability of its own lies at a random place inside
it (randomised probability integral transform), so that these are right for atoms, too. FILE gets
the scores of `glfm evaluate` besides, also of each column's own distribution (`marginal`).

Pooled over tables, the expected calibration error of level probabilities stands beside the range in
which that of perfectly calibrated forecasts of the same probabilities falls 95 % of the time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from glfm_cli.encoding import encode
from glfm_cli.evaluation import scores
from glfm_cli.evaluation.masks import draw_mask
from glfm_cli.evaluation.methods import choose_methods
from glfm_cli.evaluation.scoring import Score, score_all, spans
from glfm_cli.evaluation.task import AT, Prediction, hide
from glfm_cli.inference.executors import available_threads
from glfm_cli.io import read_table
from glfm_cli.options import Sampling
from glfm_cli.schema import read_schema

SHOWN = ("coverage_50", "coverage_80", "coverage_95", "ncrps", "log_score", "calibration")
Levels = list[tuple[np.ndarray, np.ndarray]]  # probabilities (n, R) and true codes (n,)


def evaluate(path: Path, types: Path, options: argparse.Namespace) -> tuple[dict, Levels]:
    """Return the scores of one table, and the model's level probabilities beside the truth."""
    table, schema = read_table(path), read_schema(types)
    if options.rows and table.num_rows > options.rows:
        keep = np.sort(np.random.default_rng(0).choice(table.num_rows, options.rows, False))
        table = table.take(keep)
    data = encode(table, schema, file=str(path))
    rng = np.random.default_rng([zlib.crc32(path.name.encode()), options.seed])
    mask = draw_mask(data, "mcar", options.rate, rng)
    task = hide(table, schema, data, mask, seed=options.seed, threads=options.threads)
    settings = dict(item.split("=", 1) for item in options.settings)
    sampling = Sampling(
        None, options.chains, options.warmup, options.draws, options.thin, settings=settings
    )  # fmt: skip
    name = path.name.split(".")[0]
    result: dict = {"table": name, "rate": options.rate, "seed": options.seed}
    glfm, marginal = choose_methods([options.model, "marginal"], {}, sampling, timeout=1.0)
    began = time.monotonic()
    posterior = glfm.sample(task).posterior
    result["seconds"] = time.monotonic() - began
    plain = glfm.answer(replace(posterior, recalibration=None), task)
    answer = glfm.answer(posterior, task)
    for title, one in (("uncorrected", plain), ("glfm", answer), ("marginal", marginal.fit(task))):
        rows = score_all(data.columns, spans(data.columns), task.truth, one)
        result[title] = shown(rows) | forecasts(one, task.truth, rng)
    return result, level_forecasts(answer, task.truth)


def forecasts(answer: dict[int, Prediction], truth: dict[int, np.ndarray], rng: Any) -> dict:
    """Return overconfidence, and the shares of numbers inside central intervals."""
    numbers = [
        place(part, truth[d], rng) for d, part in answer.items() if part.quantiles is not None
    ]
    u = np.concatenate([np.empty(0), *numbers])
    levels = level_forecasts(answer, truth)
    too_sure = [p.max(axis=1) - (p.argmax(axis=1) == x) for p, x in levels]
    return {
        "overconfidence": float(np.mean(np.concatenate(too_sure))) if too_sure else np.nan,
        **{f"inside_{p}": float(np.mean(np.abs(u - 0.5) < p / 200)) for p in (50, 95) if u.size},
    }


def place(part: Prediction, x: np.ndarray, rng: Any) -> np.ndarray:
    """Return the distribution functions at x (n,), anywhere in between where they jump there."""
    order = np.argsort(AT)
    at = np.concatenate([[0.0], np.array(AT)[order], [1.0]])
    quantiles = part.quantiles[:, order]
    low = at[np.sum(quantiles < x[:, None], axis=1)]
    high = at[at.size - 1 - np.sum(quantiles > x[:, None], axis=1)]
    return low + rng.random(x.size) * (high - low)


def row_of(result: dict) -> str:
    """Return a table's line: without recalibration, and with it."""
    both = [result["uncorrected"], result["glfm"]]
    cells = [
        " / ".join(f"{one.get(name, np.nan):.{digits}f}" for one in both)
        for name, digits in (
            ("log_score", 4), ("overconfidence", 3), ("inside_50", 3), ("inside_95", 3),
        )
    ]  # fmt: skip
    return f"| {result['table']} | {' | '.join(cells)} | {result['seconds']:.0f} |"


def shown(rows: list[Score]) -> dict[str, float]:
    """Return the scores of all columns together, and coverage of the continuous ones."""
    found = {row.score: row.value for row in rows if row.scope == "all" and row.score in SHOWN}
    for name in ("coverage_50", "coverage_95"):
        part = [r for r in rows if r.scope == "type" and r.score == name
                and r.type in ("real", "positive")]  # fmt: skip
        if part:
            weight = [row.cells for row in part]
            found[f"{name}_continuous"] = float(np.average([r.value for r in part], weights=weight))
    return found


def level_forecasts(answer: dict[int, Prediction], truth: dict[int, np.ndarray]) -> Levels:
    """Return the level probabilities of each column that has levels, and what was true."""
    return [
        (part.probabilities, truth[d].astype(int))
        for d, part in answer.items()
        if part.probabilities is not None
    ]


def pooled(levels: Levels, simulations: int, rng: np.random.Generator) -> dict:
    """Return the expected calibration error of all forecasts together.

    `range` is that of outcomes drawn from the forecasts themselves.
    """

    def error(outcomes: list[np.ndarray]) -> float:
        tallies = [scores.reliability(x, p) for (p, _), x in zip(levels, outcomes, strict=True)]
        total = tallies[0]
        for tally in tallies[1:]:
            total = total + tally
        return scores.calibration_error(total)

    cdfs = [np.cumsum(p, axis=1) for p, _ in levels]
    simulated = [
        error([np.minimum((rng.random((c.shape[0], 1)) > c).sum(1), c.shape[1] - 1) for c in cdfs])
        for _ in range(simulations)
    ]
    return {
        "error": error([truth for _, truth in levels]),
        "range": [float(v) for v in np.quantile(simulated, [0.025, 0.975])],
        "forecasts": sum(p.size for p, _ in levels),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="sample_data", type=Path)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", default="")
    parser.add_argument("--model", default="glfm")
    parser.add_argument("--rows", type=int, default=5000, help="at most so many rows of a table")
    parser.add_argument("--chains", type=int, help="as the command has it if left out")
    parser.add_argument("--warmup", type=int)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--thin", type=int)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chosen = set(filter(None, options.tables.split(",")))
    results: list[dict] = []
    print("| table | log score | overconfidence | 50 % | 95 % | seconds |\n" + "| --- " * 6 + "|")
    levels: Levels = []
    for types in sorted(options.folder.glob("*.types.yaml")):
        name = types.name.removesuffix(".types.yaml")
        paths = [p for s in (".csv", ".csv.gz") if (p := types.with_name(name + s)).exists()]
        if not paths or (chosen and name not in chosen):
            continue
        result, forecasts = evaluate(paths[0], types, options)
        levels += forecasts
        results.append(result)
        print(row_of(result), flush=True)
    if levels:
        results.append(pooled(levels, 400, np.random.default_rng(0)))
        print(json.dumps(results[-1]))
    if options.out:
        options.out.write_text("".join(json.dumps(r) + "\n" for r in results), encoding="utf-8")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
