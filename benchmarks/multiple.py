"""Are analyses of several completed tables right, and as sharp as those of other imputers?

    python benchmarks/multiple.py [--designs linear,poisson] [--rows 300] [--sets 40] [--first 0]
        [--methods glfm,bayes_ridge,mice] [--analysis] [--set NAME=VALUE ...] [--label NAME]
        [--beside all_cells] [--out FILE]

Six regressions whose covariates lack 40 % of their cells at random, the more likely the larger the
response. Each data set is completed --tables times by every method, analysed, and pooled by
Rubin's rules; printed are, for each coefficient,

    bias      mean difference from the estimate of all cells, in standard errors (pooled)
    covers    share of 95 % intervals that cover the truth
    width     mean width of the intervals, beside that of all cells

Methods: a latent model of glfm by its name (`--set` is for all of these, `--analysis` tells them
the regression, `--label` names the outcome), `bayes_ridge` (scikit-learn's
IterativeImputer(sample_posterior=True)), `mice` (R's, defaults), `complete_rows`, and of the linear
regressions with a binary covariate `true_law`: draws under the law that their covariates were
simulated from. `--beside true_law` takes the bias from there, free of what chance did to the data
sets. Outcomes are kept in --out, a JSON object a line, and not made again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from glfm_cli import impute
from glfm_cli.latent import MODELS

RATE, SLOPE = 0.4, 0.5
MICE = """
suppressMessages(library(mice))
given <- commandArgs(TRUE)
for (path in list.files(given[1], pattern = "^set", full.names = TRUE)) {
    d <- read.csv(path)
    for (name in names(d)) {
        if (startsWith(name, "g")) d[[name]] <- factor(d[[name]])
        if (startsWith(name, "o")) d[[name]] <- factor(d[[name]], ordered = TRUE)
    }
    done <- mice(d, m = as.integer(given[2]), printFlag = FALSE, seed = as.integer(given[3]))
    write.csv(complete(done, "long"), sub("set", "done", path), row.names = FALSE)
}
"""


class Design(NamedTuple):
    """A regression: how its table is simulated, and which terms it has.

    simulate : of a random generator and n rows, the table without the response
    terms : of a table, its regressors but the constant
    truth : coefficients, the constant's first
    family : of the response
    kinds : column types of the table
    formula : the regression as `--analysis` takes it
    """

    simulate: Callable[[np.random.Generator, int], dict[str, np.ndarray]]
    terms: Callable[[pd.DataFrame], dict[str, np.ndarray]]
    truth: tuple[float, ...]
    family: str
    kinds: dict[str, str]
    formula: str = "y ~ x + g"


def group(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Return a binary covariate that depends on another."""
    return (rng.random(x.size) < expit(0.8 * x)).astype(float)


def pair(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    x = rng.standard_normal(n)
    return {"x": x, "g": group(rng, x)}


def two_real(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    x = rng.standard_normal(n)
    return {"x": x, "v": 0.5 * x + np.sqrt(0.75) * rng.standard_normal(n)}


def lognormal(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    z = rng.standard_normal(n)
    return {"x": np.exp(0.7 * z), "g": group(rng, z)}


def with_ordinal(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    x = rng.standard_normal(n)
    latent = 0.5 * x + rng.standard_normal(n)
    return {"x": x, "o": 1.0 + np.searchsorted([-1.0, 0.0, 1.0], latent)}


def as_they_are(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return {name: table[name].to_numpy() for name in table.columns if name != "y"}


def with_product(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return as_they_are(table) | {"x g": (table["x"] * table["g"]).to_numpy()}


REAL = {"x": "real", "g": "categorical", "y": "real"}
DESIGNS = {
    "linear": Design(pair, as_they_are, (1.0, 0.8, 0.7), "normal", REAL),
    "two real": Design(
        two_real,
        as_they_are,
        (1.0, 0.7, -0.5),
        "normal",
        {"x": "real", "v": "real", "y": "real"},
        "y ~ x + v",
    ),
    "lognormal": Design(
        lognormal, as_they_are, (1.0, 0.6, 0.7), "normal", REAL | {"x": "positive"}
    ),
    "interaction": Design(
        pair, with_product, (1.0, 0.6, 0.5, 0.5), "normal", REAL, "y ~ x * g"
    ),
    "logistic": Design(
        with_ordinal,
        as_they_are,
        (-1.5, 0.7, 0.5),
        "binomial",
        {"x": "real", "o": "ordinal", "y": "categorical"},
        "y ~ x + o",
    ),
    "poisson": Design(pair, as_they_are, (0.5, 0.4, 0.5), "poisson", REAL | {"y": "count"}),
}


def simulate(design: Design, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table, and the same with 40 % of each covariate missing at random."""
    table = pd.DataFrame(design.simulate(rng, n))
    eta = regressors(design, table) @ np.array(design.truth)
    if design.family == "normal":
        y = eta + rng.standard_normal(n)
    elif design.family == "binomial":
        y = (rng.random(n) < expit(eta)).astype(float)
    else:
        y = rng.poisson(np.exp(eta)).astype(float)
    score = SLOPE * (y - y.mean()) / y.std()
    shift = np.log(RATE / (1 - RATE))
    for _ in range(20):  # until the mean chance is the rate
        chance = expit(score + shift)
        shift += (RATE - chance.mean()) / np.mean(chance * (1 - chance))
    incomplete = table.mask(rng.random(table.shape) < chance[:, None])
    return table.assign(y=y), incomplete.assign(y=y)


def regressors(design: Design, table: pd.DataFrame) -> np.ndarray:
    return np.column_stack([np.ones(len(table)), *design.terms(table).values()])


def regress(design: Design, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return maximum likelihood coefficients and their variances."""
    X, y = regressors(design, table), table["y"].to_numpy()
    if design.family == "normal":
        inverse = np.linalg.inv(X.T @ X)
        b = inverse @ X.T @ y
        return b, np.diag(inverse) * np.sum((y - X @ b) ** 2) / (len(y) - b.size)
    b = np.zeros(X.shape[1])
    b[0] = 0.0 if design.family == "binomial" else np.log(y.mean())
    for _ in range(50):  # Newton's steps
        mean = expit(X @ b) if design.family == "binomial" else np.exp(np.minimum(X @ b, 30.0))
        weight = mean * (1 - mean) if design.family == "binomial" else mean
        inverse = np.linalg.inv(X.T @ (weight[:, None] * X))
        step = inverse @ X.T @ (y - mean)
        b += step
        if np.abs(step).max() < 1e-8:
            break
    return b, np.diag(inverse)


def pool(design: Design, tables: list[pd.DataFrame]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return estimates, standard errors and half widths by Rubin's rules [Barnard & Rubin 1999]."""
    b, within = (np.array(part) for part in zip(*(regress(design, t) for t in tables), strict=True))
    df, m = len(tables[0]) - b.shape[1], len(tables)
    if m == 1:
        se = np.sqrt(within[0])
        return b[0], se, stats.t.ppf(0.975, df) * se
    between = (1 + 1 / m) * b.var(axis=0, ddof=1)
    total = within.mean(axis=0) + between
    share = between / total
    observed = (1 - share) * df * (df + 1) / (df + 3)
    df_pooled = 1 / (share**2 / (m - 1) + 1 / observed)
    se = np.sqrt(total)
    return b.mean(axis=0), se, stats.t.ppf(0.975, df_pooled) * se


def by_glfm(
    model: str, design: Design, table: pd.DataFrame, seed: int, options: argparse.Namespace
) -> list[pd.DataFrame]:
    """Return the versions of a latent model."""
    text = table.astype(object).where(table.notna(), None)
    for name, kind in design.kinds.items():
        if kind != "real" and kind != "positive":
            text[name] = [None if v is None else int(v) for v in text[name]]
    settings = dict(pair.split("=", 1) for pair in options.set)
    done = impute(
        text,
        {"columns": {name: design.kinds[name] for name in text.columns}},
        model=model,
        seed=seed,
        chains=options.chains,
        warmup=options.warmup,
        draws=options.tables // options.chains,
        thin=options.thin,
        threads=1,
        settings={"recalibrate": "no"} | settings,
    )
    formula = design.formula if options.analysis else None
    versions = done.multiple(options.tables, formula).tables()
    return [pd.DataFrame({n: np.array(t[n].to_pylist(), float) for n in text}) for t in versions]


def by_bayes_ridge(table: pd.DataFrame, seed: int, n_tables: int) -> list[pd.DataFrame]:
    """Return the versions of chained Bayesian ridge regressions."""
    versions = []
    for m in range(n_tables):
        imputer = IterativeImputer(sample_posterior=True, random_state=1000 * seed + m)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filled = imputer.fit_transform(table.to_numpy())
        versions.append(pd.DataFrame(filled, columns=table.columns))
    return versions


def by_true_law(
    name: str, table: pd.DataFrame, rng: np.random.Generator, n_tables: int
) -> list[pd.DataFrame]:
    """Return versions drawn under the law of (x, g) itself, from one long chain.

    Proposals (x, g) come from it, but for the law of an observed g given x, and b is drawn exactly.
    """
    design, y, n = DESIGNS[name], table["y"].to_numpy(), len(table)
    power = 0.7 if name == "lognormal" else None
    no_x, no_g = table["x"].isna().to_numpy(), table["g"].isna().to_numpy()
    x = table["x"].fillna(1.0).to_numpy()
    z = np.where(no_x, rng.standard_normal(n), x if power is None else np.log(x) / power)
    g = np.where(no_g, rng.random(n) < 0.5, table["g"].fillna(0.0))

    def at(z: np.ndarray, g: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame({"x": z if power is None else np.exp(power * z), "g": g, "y": y})

    def log_p(z: np.ndarray, g: np.ndarray, b: np.ndarray, s2: float) -> np.ndarray:
        seen = np.where(no_g, 0.0, 0.8 * g * z - np.logaddexp(0.0, 0.8 * z))
        return seen - 0.5 * (y - regressors(design, at(z, g)) @ b) ** 2 / s2

    versions = []
    for sweep in range(80 + 4 * n_tables):
        X = regressors(design, at(z, g))
        Q = X.T @ X
        mode = np.linalg.solve(Q, X.T @ y)
        s2 = np.sum((y - X @ mode) ** 2) / rng.chisquare(n - mode.size)
        root = np.linalg.cholesky(Q).T
        b = mode + np.sqrt(s2) * np.linalg.solve(root, rng.standard_normal(mode.size))
        for _ in range(3):
            new_z = np.where(no_x, rng.standard_normal(n), z)
            new_g = np.where(no_g, group(rng, new_z), g)
            taken = np.log(rng.random(n)) < log_p(new_z, new_g, b, s2) - log_p(z, g, b, s2)
            z, g = np.where(taken, new_z, z), np.where(taken, new_g, g)
        if sweep >= 80 and sweep % 4 == 3:
            versions.append(at(z, g))
    return versions


def by_mice(table: pd.DataFrame, seed: int, n_tables: int) -> list[pd.DataFrame]:
    """Return the versions of R's mice."""
    with tempfile.TemporaryDirectory() as folder:
        binary = set(table["y"].unique()) <= {0.0, 1.0}
        named = table.rename(columns={"y": "g_y"} if binary else {})
        named.to_csv(Path(folder) / "set.csv", index=False)
        script = Path(folder) / "mice.R"
        script.write_text(MICE, encoding="utf-8")
        subprocess.run(
            ["Rscript", str(script), folder, str(n_tables), str(seed + 1)],
            check=True,
            capture_output=True,
        )
        long = pd.read_csv(Path(folder) / "done.csv").rename(columns={"g_y": "y"})
    return [part[list(table.columns)].astype(float) for _, part in long.groupby(".imp")]


def outcome(name: str, method: str, seed: int, options: argparse.Namespace) -> dict:
    """Return the pooled answer of one method on one data set."""
    design = DESIGNS[name]
    rng = np.random.default_rng([zlib.crc32(name.encode()), options.rows, seed])
    whole, incomplete = simulate(design, options.rows, rng)
    if method == "all_cells":
        versions = [whole]
    elif method == "complete_rows":
        versions = [incomplete.dropna()]
    elif method == "bayes_ridge":
        versions = by_bayes_ridge(incomplete, seed, options.tables)
    elif method == "true_law":
        versions = by_true_law(name, incomplete, rng, 5 * options.tables)
    elif method == "mice":
        versions = by_mice(incomplete, seed, options.tables)
    else:
        versions = by_glfm(method, design, incomplete, seed, options)
    b, se, half = pool(design, versions)
    return {"b": b.tolist(), "se": se.tolist(), "half": half.tolist()}


def summarise(name: str, methods: list[str], found: dict[str, list[dict]], beside: str) -> None:
    """Print the table of one design."""
    design = DESIGNS[name]
    rng = np.random.default_rng(0)
    terms = ["constant", *design.terms(simulate(design, 50, rng)[0])]
    control = {k: np.array([one[k] for one in found["all_cells"]]) for k in ("b", "half")}
    n_sets = len(control["b"])
    print(f"\n{name}: {n_sets} data sets")
    print(f"{'':24}" + "".join(f"{term:>25}" for term in terms))
    print(f"{'':24}" + f"{'bias':>9}{'covers':>8}{'width':>8}" * len(terms))
    for method in methods:
        b, se, half = (np.array([one[k] for one in found[method]]) for k in ("b", "se", "half"))
        bias = (b - [one["b"] for one in found[beside]]).mean(axis=0) / se.mean(axis=0)
        covers = np.mean(np.abs(b - np.array(design.truth)) <= half, axis=0)
        width = half.mean(axis=0) / control["half"].mean(axis=0)
        cells = [f"{x:9.2f}{c:8.3f}{w:8.2f}" for x, c, w in zip(bias, covers, width, strict=True)]
        print(f"{method:24}" + "".join(cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--designs", default=",".join(DESIGNS))
    parser.add_argument("--methods", default="glfm,bayes_ridge,mice,complete_rows")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--sets", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed of the first data set")
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--chains", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=60)
    parser.add_argument("--thin", type=int, default=20)
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE, of glfm's models")
    parser.add_argument("--analysis", action="store_true", help="tell glfm's models the regression")
    parser.add_argument("--label", default="", help="what outcomes of these settings are called")
    parser.add_argument("--show", default="", help="labels of kept outcomes that are shown, too")
    parser.add_argument("--beside", default="all_cells", help="what the bias is taken from")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kept = {}
    if options.out and options.out.exists():
        for line in options.out.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            kept[one["design"], one["rows"], one["seed"], one["method"]] = one
    methods = ["all_cells", *filter(None, options.methods.split(","))]
    labels = {m: m + options.label if m in MODELS else m for m in methods}
    shown = [*labels.values(), *filter(None, options.show.split(","))]
    for name in options.designs.split(","):
        found: dict[str, list[dict]] = {label: [] for label in shown}
        for seed in range(options.first, options.first + options.sets):
            for method, label in labels.items():
                key = name, options.rows, seed, label
                if key not in kept:
                    names = dict(zip(("design", "rows", "seed", "method"), key, strict=True))
                    kept[key] = names | outcome(name, method, seed, options)
                    if options.out:
                        with options.out.open("a", encoding="utf-8") as out:
                            out.write(json.dumps(kept[key]) + "\n")
            for label in shown:
                if (name, options.rows, seed, label) in kept:
                    found[label].append(kept[name, options.rows, seed, label])
        summarise(name, shown, found, options.beside)


if __name__ == "__main__":
    main()
