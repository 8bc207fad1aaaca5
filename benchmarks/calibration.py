"""How well calibrated are completed cells? Hides observed cells, completes, compares.

    python benchmarks/calibration.py FOLDER [--rate 0.3] [--seed 0] [--tables a,b] [--out FILE]

For every NAME.csv(.gz) with NAME.types.yaml in FOLDER (`sample_data` by default): hide a share of
the observed cells completely at random, complete the table, and print for the hidden cells

- coverage of central 50 % and 95 % intervals (real, positive and count columns),
- CRPS divided by the column's range, and the mean log predictive density, each for the model and
  for the marginal distribution of the same columns (the model without features),
- pooled over tables: the expected calibration error of level probabilities, beside the range
  in which that of perfectly calibrated forecasts of the same probabilities falls 95 % of the time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from pathlib import Path

import numpy as np

from glfm_cli.completion import CHAINS, DRAWS, THIN, WARMUP, prepare
from glfm_cli.encoding import Data
from glfm_cli.executors import available_threads
from glfm_cli.io import read_table
from glfm_cli.predictive import log_scores, predict
from glfm_cli.sampling import Problem, sample
from glfm_cli.schema import read_schema

GRID = (np.arange(50) + 0.5) / 50  # probabilities at which the CRPS integral is taken
BINS = 15


def hide(data: Data, rate: float, rng: np.random.Generator) -> list[np.ndarray]:
    """Return per column the rows hidden; every row and column keeps an observed cell."""
    observed = np.column_stack([e.observed for e in data.columns])
    hidden = observed & (rng.random(observed.shape) < rate)
    for axis in (1, 0):
        for i in np.flatnonzero(~(observed & ~hidden).any(axis=axis)):
            line = hidden[i] if axis == 1 else hidden[:, i]
            if line.any():
                line[rng.choice(np.flatnonzero(line))] = False
    return [np.flatnonzero(hidden[:, d]) for d in range(len(data.columns))]


def without(problem: Problem, rows: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the columns of a problem with the hidden cells taken out."""
    out = []
    for x, hidden in zip(problem.xs, rows, strict=True):
        x = x.copy()
        x[hidden] = np.nan
        out.append(x)
    return tuple(out)


def evaluate(path: Path, types: Path, rate: float, seed: int, options: dict) -> dict:
    """Return the scores of one table."""
    import dataclasses

    table, schema = read_table(path), read_schema(types)
    if options["rows"] and table.num_rows > options["rows"]:
        keep = np.sort(np.random.default_rng(0).choice(table.num_rows, options["rows"], False))
        table = table.take(keep)
    plan_options = {name: options[name] for name in ("chains", "warmup", "draws", "thin")}
    rng = np.random.default_rng([zlib.crc32(path.name.encode()), seed])
    result: dict = {"table": path.name.split(".")[0], "rate": rate, "seed": seed}
    truth_problem, data, _ = prepare(
        table, schema, model="glfm", seed=seed, settings=None, **plan_options
    )
    rows = hide(data, rate, rng)
    cells = {d: hidden for d, hidden in enumerate(rows) if hidden.size}
    truth = {d: truth_problem.xs[d][hidden] for d, hidden in cells.items()}
    columns = tuple(
        dataclasses.replace(e, x=x, observed=~np.isnan(x))
        for e, x in zip(data.columns, without(truth_problem, rows), strict=True)
    )
    for name, settings in (("glfm", options["settings"]), ("marginal", {"max_features": 0})):
        problem, _, plan = prepare(
            table, schema, model="glfm", seed=seed, settings=settings, **plan_options,
            data=dataclasses.replace(data, columns=columns),
        )  # fmt: skip
        began = time.monotonic()
        run = sample(problem, plan, threads=options["threads"])
        marginals = predict(run.posterior, cells, (*GRID, 0.025, 0.25, 0.75, 0.975))
        logs = log_scores(run.posterior, cells, truth)
        result[name] = {"seconds": time.monotonic() - began, **score(data, marginals, logs, truth)}
        if name == "glfm":
            result["levels"] = [
                (marginals[d].probabilities, truth[d].astype(int))
                for d in cells
                if marginals[d].probabilities is not None
            ]
    return result


def score(data: Data, marginals: dict, logs: dict, truth: dict) -> dict:
    """Return coverage, CRPS and log score: means over the cells of each column, then columns."""
    inside: dict[str, list] = {"50": [], "95": []}
    inside_continuous: dict[str, list] = {"50": [], "95": []}
    crps, log_score = [], []
    for d, marginal in marginals.items():
        log_score.append(float(logs[d].mean()))
        if marginal.probabilities is not None:
            continue
        x, q = truth[d], marginal.quantiles
        for name, low, high in (("50", -3, -2), ("95", -4, -1)):
            hit = (x >= q[:, low]) & (x <= q[:, high])
            inside[name].append(hit)
            if data.columns[d].column.type != "count":
                inside_continuous[name].append(hit)
        loss = (x[:, None] - q[:, : GRID.size]) * (GRID - (x[:, None] < q[:, : GRID.size]))
        known = data.columns[d].x[data.columns[d].observed]
        crps.append(2 * float(loss.mean()) / max(float(np.ptp(known)), 1e-300))
    out = {"log_score": float(np.mean(log_score))}
    if crps:
        out["crps"] = float(np.mean(crps))
    for label, hits in (("cover", inside), ("cover_continuous", inside_continuous)):
        for name, part in hits.items():
            if part:
                out[f"{label}{name}"] = float(np.concatenate(part).mean())
    return out


def calibration_error(levels: list, simulations: int, rng: np.random.Generator) -> dict:
    """Return the pooled expected calibration error of all level probabilities.

    sum over bins of (share of forecasts in the bin) x |mean forecast - observed frequency|, bins
    of equal width, every level of every hidden cell a forecast; `range` is that of outcomes
    drawn from the forecasts themselves.
    """

    def error(outcomes: list[np.ndarray]) -> float:
        hits = np.zeros(BINS)
        for (p, _), outcome, index in zip(levels, outcomes, bins, strict=True):
            hit = index[np.arange(p.shape[0]), outcome]
            hits += np.bincount(hit, minlength=BINS)
        return float(np.abs(hits - mass).sum() / count)

    bins = [np.minimum((p * BINS).astype(int), BINS - 1) for p, _ in levels]
    mass = sum(
        np.bincount(b.ravel(), p.ravel(), minlength=BINS)
        for (p, _), b in zip(levels, bins, strict=True)
    )
    count = sum(p.size for p, _ in levels)
    cdfs = [np.cumsum(p, axis=1) for p, _ in levels]
    simulated = [
        error([np.minimum((rng.random((c.shape[0], 1)) > c).sum(1), c.shape[1] - 1) for c in cdfs])
        for _ in range(simulations)
    ]
    return {
        "error": error([truth for _, truth in levels]),
        "range": [float(v) for v in np.quantile(simulated, [0.025, 0.975])],
        "forecasts": int(count),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="sample_data", type=Path)
    parser.add_argument("--rate", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", default="")
    parser.add_argument("--rows", type=int, default=5000, help="at most so many rows of a table")
    parser.add_argument("--chains", type=int, default=CHAINS)
    parser.add_argument("--warmup", type=int, default=WARMUP)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--thin", type=int, default=THIN)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    options = vars(arguments) | {
        "settings": dict(item.split("=", 1) for item in arguments.settings)
    }
    chosen = set(filter(None, arguments.tables.split(",")))
    levels, results = [], []
    for types in sorted(arguments.folder.glob("*.types.yaml")):
        name = types.name.removesuffix(".types.yaml")
        paths = [p for s in (".csv", ".csv.gz") if (p := types.with_name(name + s)).exists()]
        if not paths or (chosen and name not in chosen):
            continue
        result = evaluate(paths[0], types, arguments.rate, arguments.seed, options)
        levels += result.pop("levels")
        results.append(result)
        print(json.dumps(result), flush=True)
    if levels:
        pooled = calibration_error(levels, 400, np.random.default_rng(0))
        results.append(pooled)
        print(json.dumps(pooled))
    if arguments.out:
        arguments.out.write_text("".join(json.dumps(r) + "\n" for r in results), encoding="utf-8")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
