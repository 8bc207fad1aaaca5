"""The effect of a treatment over time, from completed tables of simulated trials.

    python benchmarks/trial.py [SEEDS]

80 patients with five visits, in two arms that part by 2 a visit; intercepts and slopes of patients
are normal, and who is high leaves early, so that about half of the values of the last visit are
missing at random. The effect is the difference between arms at the last visit, -8: of all values,
of a mixed model of those that are there (where statsmodels is installed), of ten completed tables
of a row a visit whose arm has role predictor and one whose arm has no role, of ten of a row a
patient, of ten of which each arm was a table of its own, and of the values that are there. With the
root mean square distance to that of all values.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

from glfm_cli import impute

PATIENTS, VISITS, TABLES = 80, 5, 10
VISIT = [f"y{v}" for v in range(VISITS)]
LENGTH = {"model": "glfm", "chains": 6, "draws": 20}
# What `--multiple` takes where no model is named.
LINEAR = {"components": 10, "alpha_rate": 10.0, "initial_features": 0, "noise_rate": 0.05}


def trial(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return all values (a row a patient and visit), and those that are there."""
    rng, v = np.random.default_rng(seed), np.arange(VISITS)
    arm = np.arange(PATIENTS) % 2
    level, slope = rng.normal(50.0, 3.0, PATIENTS), rng.normal(0.0, 0.4, PATIENTS) - 2.0 * arm
    y = level[:, None] + slope[:, None] * v + rng.normal(0.0, 2.0, (PATIENTS, VISITS))
    leaves = rng.random(y.shape) < 1.0 / (1.0 + np.exp(1.0 - 0.25 * (np.roll(y, 1, axis=1) - 50.0)))
    leaves[:, :2] = False
    gone = np.logical_or.accumulate(leaves, axis=1)
    table = pd.DataFrame({
        "patient": np.repeat([f"p{p}" for p in range(PATIENTS)], VISITS),
        "visit": np.tile(v.astype(float), PATIENTS),
        "arm": np.repeat(np.where(arm, "B", "A"), VISITS),
        "y": y.ravel().round(2),
    })  # fmt: skip
    return table, table.assign(y=table["y"].mask(gone.ravel()))


def effect(table: pd.DataFrame) -> float:
    """Return the difference between the arms' means at the last visit."""
    last = table[table["visit"] == VISITS - 1]
    means = last.groupby("arm")["y"].mean()
    return float(means["B"] - means["A"])


def long(seen: pd.DataFrame, arm: dict[str, str], seed: int) -> float:
    """Return the mean effect of completed tables of a row a visit."""
    types = {"patient": "group", "visit": {"type": "real", "role": "time"}, "arm": arm, "y": "real"}
    done = impute(seen, {"columns": types}, settings=LINEAR, seed=seed, **LENGTH)
    return float(np.mean([effect(one.to_pandas()) for one in done.multiple(TABLES).tables()]))


def wide(seen: pd.DataFrame, seed: int, *, each_arm: bool = False) -> float:
    """Return that of a row a patient; each_arm : completed as a table of its own."""
    table = seen.pivot_table(index=["patient", "arm"], columns="visit", values="y", dropna=False)
    table = table.dropna(how="all").set_axis(VISIT, axis=1).reset_index()
    arm = "ignore" if each_arm else "categorical"
    types = {"columns": {"patient": "id", "arm": arm, **dict.fromkeys(VISIT, "real")}}
    parts = [part for _, part in table.groupby("arm")] if each_arm else [table]
    done = [impute(one, types, settings=LINEAR, seed=seed, **LENGTH) for one in parts]
    made = pd.concat([one.to_pandas() for each in done for one in each.multiple(TABLES).tables()])
    means = made.groupby("arm")[VISIT[-1]].mean()
    return float(means["B"] - means["A"])


def mixed(seen: pd.DataFrame) -> float:
    """Return that of a mixed model of the values that are there; NaN without statsmodels."""
    try:
        from statsmodels.formula.api import mixedlm
    except ImportError:
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mixedlm("y ~ C(visit) * arm", seen.dropna(), groups="patient", re_formula="~visit")
        found = model.fit().params
    return float(found["arm[T.B]"] + found[f"C(visit)[T.{VISITS - 1}.0]:arm[T.B]"])


def effects(seed: int) -> Iterator[tuple[str, float]]:
    """Yield the effect by each way."""
    table, seen = trial(seed)
    arm = {"type": "categorical"}
    yield "all values", effect(table)
    yield "mixed model", mixed(seen)
    yield "group and time, arm a predictor", long(seen, arm | {"role": "predictor"}, seed)
    yield "one row a patient", wide(seen, seed)
    yield "one row a patient, each arm by itself", wide(seen, seed, each_arm=True)
    yield "values that are there", effect(seen)
    yield "group and time, arm without a role", long(seen, arm, seed)


def main() -> None:
    """Print a line for each way."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    found = pd.DataFrame([dict(effects(seed)) for seed in range(seeds)])
    away = found.sub(found["all values"], axis=0)
    print("| effect at the last visit | mean | distance to that of all values |")
    print("| --- | --- | --- |")
    for name in found:
        print(f"| {name} | {found[name].mean():.1f} | {np.sqrt(np.mean(away[name] ** 2)):.1f} |")


if __name__ == "__main__":
    main()
