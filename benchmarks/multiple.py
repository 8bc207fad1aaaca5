"""Are analyses of several completed tables right, and as narrow as those of other imputers?

    python benchmarks/multiple.py [--designs linear,poisson] [--rows 300] [--sets 40] [--first 0]
        [--methods glfm,bayes_ridge,mice] [--analysis] [--set NAME=VALUE ...] [--label NAME]
        [--beside all_cells] [--out FILE]

Six regressions whose covariates lack 40 % of their cells at random, the more likely the larger the
response. Each data set is completed --tables times by every method, analysed, and pooled by
Rubin's rules; printed are, for each coefficient, with standard errors

    bias      mean difference from the estimate of all cells, in standard errors (pooled)
    covers    share of 95 % intervals that cover the truth, %
    expected  the same, with what chance did to the estimates of all cells taken off
    spread    how far estimates lie from those of all cells (sd), beside what intervals allow for
              it: above 1 they are too narrow
    width     mean width of the intervals, beside that of all cells
    beside    the same, beside the narrower of mice and bayes_ridge among those that cover 92 %

Methods: a latent model of glfm by its name (`--set` is for all of these, `glfm` has the settings of
`glfm impute --multiple`; `--analysis` tells them the regression, `--label` names the outcome),
`bayes_ridge` (scikit-learn's IterativeImputer(sample_posterior=True)), `mice` (R's, defaults),
`complete_rows`, and `true_law`: draws under the law that the covariates were simulated from, which
no imputer knows. `--beside true_law` takes the bias from there, free of what chance did to the data
sets.

Data sets are made --block at a time of every design, each by all methods. Outcomes are kept in
--out, a JSON object a line, and not made again: a run that is stopped (Ctrl-C) prints what all
methods of a design have, and goes on where it was when it is started again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit, ndtr
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from glfm_cli import impute, pool
from glfm_cli.completion.analysis.counts import FAMILIES
from glfm_cli.completion.analysis.families import RegressionDraw, Seen
from glfm_cli.completion.multiple import LINEAR
from glfm_cli.latent import MODELS

RATE, SLOPE = 0.4, 0.5
PEERS, ENOUGH = ("mice", "bayes_ridge"), 92.0
WARMUP, APART = 80, 10  # sweeps of the true law
MICE = """
suppressMessages(library(mice))
given <- commandArgs(TRUE)
for (path in list.files(given[1], pattern = "^set", full.names = TRUE)) {
    d <- read.csv(path)
    for (name in names(d)) {
        if (startsWith(name, "g")) d[[name]] <- factor(d[[name]])
        if (startsWith(name, "o")) d[[name]] <- factor(d[[name]], ordered = TRUE)
    }
    seed <- as.integer(gsub("[^0-9]", "", basename(path))) + 1
    done <- mice(d, m = as.integer(given[2]), printFlag = FALSE, seed = seed)
    write.csv(complete(done, "long"), sub("set", "done", path), row.names = FALSE)
}
"""


class Second(NamedTuple):
    """A covariate that depends on the first, z: drawn given it, and the log of p(values | z)."""

    name: str
    draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    log_p: Callable[[np.ndarray, np.ndarray], np.ndarray]


class Design(NamedTuple):
    """A regression: how its table is simulated, and which terms it has.

    second : the covariate beside x
    terms : of a table, its regressors but the constant
    truth : coefficients, the constant's first
    family : of the response
    kinds : column types of the table
    formula : the regression as `--analysis` takes it
    power : x is exp(power z), z itself for 0;  z ~ N(0, 1)
    """

    second: Second
    terms: Callable[[pd.DataFrame], dict[str, np.ndarray]]
    truth: tuple[float, ...]
    family: str
    kinds: dict[str, str]
    formula: str = "y ~ x + g"
    power: float = 0.0

    def covariates(self, z: np.ndarray, second: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(
            {"x": np.exp(self.power * z) if self.power else z, self.second.name: second}
        )


def draw_group(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return (rng.random(z.size) < expit(0.8 * z)).astype(float)


def log_group(z: np.ndarray, g: np.ndarray) -> np.ndarray:
    return 0.8 * g * z - np.logaddexp(0.0, 0.8 * z)


def draw_real(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return 0.5 * z + np.sqrt(0.75) * rng.standard_normal(z.size)


def log_real(z: np.ndarray, v: np.ndarray) -> np.ndarray:
    return -0.5 * (v - 0.5 * z) ** 2 / 0.75


def draw_ordinal(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    return 1.0 + np.searchsorted(CUTS[1:-1], 0.5 * z + rng.standard_normal(z.size))


def log_ordinal(z: np.ndarray, o: np.ndarray) -> np.ndarray:
    level = o.astype(int)
    return np.log(ndtr(CUTS[level] - 0.5 * z) - ndtr(CUTS[level - 1] - 0.5 * z))


CUTS = np.array([-np.inf, -1.0, 0.0, 1.0, np.inf])
GROUP = Second("g", draw_group, log_group)
REAL_V = Second("v", draw_real, log_real)
ORDINAL = Second("o", draw_ordinal, log_ordinal)


def as_they_are(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return {name: table[name].to_numpy() for name in table.columns if name != "y"}


def with_product(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return as_they_are(table) | {"x g": (table["x"] * table["g"]).to_numpy()}


KINDS = {"x": "real", "g": "categorical", "y": "real"}
TWO_REAL = {"x": "real", "v": "real", "y": "real"}
LEVELS = {"x": "real", "o": "ordinal", "y": "categorical"}
DESIGNS = {
    "linear": Design(GROUP, as_they_are, (1.0, 0.8, 0.7), "linear", KINDS),
    "two real": Design(REAL_V, as_they_are, (1.0, 0.7, -0.5), "linear", TWO_REAL, "y ~ x + v"),
    "lognormal": Design(
        GROUP, as_they_are, (1.0, 0.6, 0.7), "linear", KINDS | {"x": "positive"}, power=0.7
    ),
    "interaction": Design(GROUP, with_product, (1.0, 0.6, 0.5, 0.5), "linear", KINDS, "y ~ x * g"),
    "logistic": Design(ORDINAL, as_they_are, (-1.5, 0.7, 0.5), "logistic", LEVELS, "y ~ x + o"),
    "poisson": Design(GROUP, as_they_are, (0.5, 0.4, 0.5), "poisson", KINDS | {"y": "count"}),
}


def simulate(design: Design, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a table, and the same with 40 % of each covariate missing at random."""
    z = rng.standard_normal(n)
    table = design.covariates(z, design.second.draw(rng, z))
    eta = regressors(design, table) @ np.array(design.truth)
    if design.family == "linear":
        y = eta + rng.standard_normal(n)
    elif design.family == "logistic":
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
    if design.family == "linear":
        inverse = np.linalg.inv(X.T @ X)
        b = inverse @ X.T @ y
        return b, np.diag(inverse) * np.sum((y - X @ b) ** 2) / (len(y) - b.size)
    b = np.zeros(X.shape[1])
    b[0] = 0.0 if design.family == "logistic" else np.log(y.mean())
    for _ in range(50):  # Newton's steps
        mean = expit(X @ b) if design.family == "logistic" else np.exp(np.minimum(X @ b, 30.0))
        weight = mean * (1 - mean) if design.family == "logistic" else mean
        inverse = np.linalg.inv(X.T @ (weight[:, None] * X))
        step = inverse @ X.T @ (y - mean)
        b += step
        if np.abs(step).max() < 1e-8:
            break
    return b, np.diag(inverse)


def pooled(
    design: Design, tables: list[pd.DataFrame]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return estimates, standard errors and half widths by Rubin's rules."""
    b, within = (np.array(part) for part in zip(*(regress(design, t) for t in tables), strict=True))
    df = len(tables[0]) - b.shape[1]
    if len(tables) == 1:
        se = np.sqrt(within[0])
        return b[0], se, stats.t.ppf(0.975, df) * se
    found = pool(b, within, df)
    return found.estimate, found.se, found.upper - found.estimate


def by_glfm(
    model: str, design: Design, table: pd.DataFrame, seed: int, options: argparse.Namespace
) -> list[pd.DataFrame]:
    """Return the versions of a latent model."""
    text = table.astype(object).where(table.notna(), None)
    for name, kind in design.kinds.items():
        if kind != "real" and kind != "positive":
            text[name] = [None if v is None else int(v) for v in text[name]]
    settings = LINEAR if model == "glfm" else {}
    settings = settings | dict(pair.split("=", 1) for pair in options.set)
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
    design: Design, table: pd.DataFrame, rng: np.random.Generator, n_tables: int
) -> list[pd.DataFrame]:
    """Return versions drawn under the law of the covariates itself, from one long chain.

    Proposals of both come from it, but for the law of an observed second given the first.
    """
    name, draw_second, log_second = design.second
    family, y, n = FAMILIES[design.family], table["y"].to_numpy(), len(table)
    no_x, no_second = table["x"].isna().to_numpy(), table[name].isna().to_numpy()
    x = table["x"].fillna(1.0).to_numpy()
    z = np.where(no_x, rng.standard_normal(n), np.log(x) / design.power if design.power else x)
    second = np.where(no_second, draw_second(rng, z), table[name].to_numpy())

    def log_p(z: np.ndarray, second: np.ndarray, at: RegressionDraw) -> np.ndarray:
        X = regressors(design, design.covariates(z, second))
        seen = np.where(no_second, 0.0, log_second(z, second))
        return seen + family.log_density(y, X, at)

    versions, at = [], None
    for sweep in range(WARMUP + APART * n_tables):
        X = regressors(design, design.covariates(z, second))
        at = family.draw(Seen(y, X, np.ones(X.shape[1])), at, rng)
        for _ in range(3):
            new_z = np.where(no_x, rng.standard_normal(n), z)
            new = np.where(no_second, draw_second(rng, new_z), second)
            taken = np.log(rng.random(n)) < log_p(new_z, new, at) - log_p(z, second, at)
            z, second = np.where(taken, new_z, z), np.where(taken, new, second)
        if sweep >= WARMUP and (sweep - WARMUP) % APART == APART - 1:
            versions.append(design.covariates(z, second).assign(y=y))
    return versions


def by_mice(
    tables: dict[int, pd.DataFrame], n_tables: int
) -> Iterator[tuple[int, list[pd.DataFrame]]]:
    """Yield the versions of R's mice of each table, by seed."""
    with tempfile.TemporaryDirectory() as folder:
        for seed, table in tables.items():
            # Responses 0 and 1 are a factor.
            named = table.rename(columns={"y": "g_y"} if set(table["y"]) <= {0.0, 1.0} else {})
            named.to_csv(Path(folder) / f"set{seed}.csv", index=False)
        script = Path(folder) / "mice.R"
        script.write_text(MICE, encoding="utf-8")
        command = ["Rscript", str(script), folder, str(n_tables)]
        subprocess.run(command, check=True, capture_output=True)
        for seed, table in tables.items():
            long = pd.read_csv(Path(folder) / f"done{seed}.csv").rename(columns={"g_y": "y"})
            parts = long.groupby(".imp")
            yield seed, [part[list(table.columns)].astype(float) for _, part in parts]


def outcomes(
    name: str, method: str, seeds: list[int], options: argparse.Namespace
) -> Iterator[tuple[int, dict]]:
    """Yield the pooled answer of one method on each data set."""
    if not seeds:
        return
    design = DESIGNS[name]

    def versions(seed: int) -> list[pd.DataFrame]:
        rng = np.random.default_rng([zlib.crc32(name.encode()), options.rows, seed])
        whole, incomplete = simulate(design, options.rows, rng)
        if method == "all_cells":
            return [whole]
        if method == "complete_rows":
            return [incomplete.dropna()]
        if method == "bayes_ridge":
            return by_bayes_ridge(incomplete, seed, options.tables)
        if method == "true_law":
            return by_true_law(design, incomplete, rng, options.tables)
        if method == "mice":  # R starts once for all
            return [incomplete]
        return by_glfm(method, design, incomplete, seed, options)

    each: Iterator[tuple[int, list[pd.DataFrame]]] = ((seed, versions(seed)) for seed in seeds)
    if method == "mice":
        each = by_mice({seed: tables[0] for seed, tables in each}, options.tables)
    for seed, tables in each:
        b, se, half = pooled(design, tables)
        yield seed, {"b": b.tolist(), "se": se.tolist(), "half": half.tolist()}


class Figures(NamedTuple):
    """What the pooled answers of a method are worth, each (2, p): values, standard errors."""

    bias: np.ndarray
    covers: np.ndarray
    expected: np.ndarray
    spread: np.ndarray
    width: np.ndarray
    beside: np.ndarray


def ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the ratio of the means of (n, p) pairs, and its standard error by linearisation."""
    value = a.mean(axis=0) / b.mean(axis=0)
    error = (a - value * b).std(axis=0, ddof=1) / np.sqrt(len(a)) / b.mean(axis=0)
    return np.array([value, error])


def share(hits: np.ndarray) -> np.ndarray:
    """Return the percentage of (n, p) hits, and its standard error."""
    p = hits.mean(axis=0)
    return 100.0 * np.array([p, np.sqrt(p * (1 - p) / len(hits))])


def without_chance(z: np.ndarray, known: np.ndarray, df: int) -> np.ndarray:
    """Return the percentage of intervals that cover, more precisely than by counting.

    Distances z (n, p) from the truth, in half widths, are taken as normal. Those of all cells have
    a known law, of t; by how much it was missed in these data sets is taken off by regression
    (control variates). The standard error is the jackknife's.
    """

    def estimate(z: np.ndarray, known: np.ndarray) -> np.ndarray:
        excess = known.var(axis=0, ddof=1) - df / (df - 2) / stats.t.ppf(0.975, df) ** 2
        off = known - known.mean(axis=0)
        slope = np.mean((z - z.mean(axis=0)) * off, axis=0) / known.var(axis=0)
        mean = z.mean(axis=0) - slope * known.mean(axis=0)
        sd = np.sqrt(np.maximum(z.var(axis=0, ddof=1) - slope**2 * excess, 0.0))
        return 100.0 * (ndtr((1 - mean) / sd) - ndtr((-1 - mean) / sd))

    n = len(z)
    if n < 3:
        return np.full((2, z.shape[1]), np.nan)
    each = [estimate(np.delete(z, i, axis=0), np.delete(known, i, axis=0)) for i in range(n)]
    return np.array([estimate(z, known), np.sqrt((n - 1.0) * np.var(each, axis=0))])


def spread(apart: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the sd of (n, p) differences beside the one allowed for, and its standard error."""
    with np.errstate(invalid="ignore"):  # 0 / 0 of all cells
        value = apart.std(axis=0, ddof=1) / np.sqrt(np.maximum(variance.mean(axis=0), 0.0))
    return np.array([value, value / np.sqrt(2.0 * len(apart))])


def figures(
    name: str, found: dict[str, dict[str, np.ndarray]], beside: str, n_rows: int
) -> dict[str, Figures]:
    """Return those of every method of a design, of its answers b, se and half (n, p)."""
    truth = np.array(DESIGNS[name].truth)
    covers = {m: share(np.abs(one["b"] - truth) <= one["half"]) for m, one in found.items()}
    cells, df = found["all_cells"], n_rows - truth.size
    best = narrowest([(found[m]["half"], covers[m][0]) for m in PEERS if m in found])
    return {
        method: Figures(
            ratio(one["b"] - found[beside]["b"], one["se"]),
            covers[method],
            without_chance(
                (one["b"] - truth) / one["half"], (cells["b"] - truth) / cells["half"], df
            ),
            spread(one["b"] - cells["b"], one["se"] ** 2 - cells["se"] ** 2),
            ratio(one["half"], cells["half"]),
            ratio(one["half"], np.full_like(one["half"], np.nan) if best is None else best),
        )
        for method, one in found.items()
    }


def narrowest(peers: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray | None:
    """Return, of half widths (n, p) and covers (p,), the narrower that cover; NaN where none do."""
    if not peers:
        return None
    halves = np.array([half for half, _ in peers])
    mean = np.where([covers >= ENOUGH for _, covers in peers], halves.mean(axis=1), np.inf)
    best = np.take_along_axis(halves, mean.argmin(axis=0)[None, None, :], axis=0)[0]
    return np.where(np.isfinite(mean.min(axis=0)), best, np.nan)


def summarise(name: str, found: dict[str, dict[str, np.ndarray]], beside: str, n_rows: int) -> None:
    """Print the table of one design."""
    n_sets = len(found["all_cells"]["b"])
    print(f"\n{name}: {n_sets} data sets")
    if n_sets < 2:
        return
    table = simulate(DESIGNS[name], 50, np.random.default_rng(0))[0]
    terms = ["constant", *DESIGNS[name].terms(table)]
    heads = [f"{head:>15}" for head in Figures._fields]
    print(f"{'':20}{'':10}" + "".join(heads))
    for method, shown in figures(name, found, beside, n_rows).items():
        for j, term in enumerate(terms):
            cells = [
                f"{value[j]:.{digits}f} ({error[j]:.{digits}f})"
                for (value, error), digits in zip(shown, (2, 1, 1, 2, 3, 3), strict=True)
            ]
            known = [cell if "nan" not in cell else "" for cell in cells]
            print(f"{method if j == 0 else '':20}{term:10}" + "".join(f"{k:>15}" for k in known))


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
    parser.add_argument("--block", type=int, default=10, help="data sets of a design in turn")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kept = {}
    if options.out and options.out.exists():
        for line in options.out.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            kept[one["design"], one["rows"], one["seed"], one["method"]] = one
    methods = ["all_cells", *filter(None, options.methods.split(","))]
    labels = {m: m + options.label if m in MODELS else m for m in methods}
    designs, end = options.designs.split(","), options.first + options.sets
    with contextlib.suppress(KeyboardInterrupt):  # what there is by then is shown
        for first in range(options.first, end, options.block):
            seeds = list(range(first, min(first + options.block, end)))
            for name, (method, label) in product(designs, labels.items()):
                keys = {seed: (name, options.rows, seed, label) for seed in seeds}
                wanted = [seed for seed in seeds if keys[seed] not in kept]
                for seed, answer in outcomes(name, method, wanted, options):
                    names = zip(("design", "rows", "seed", "method"), keys[seed], strict=True)
                    kept[keys[seed]] = dict(names) | answer
                    if options.out:
                        with options.out.open("a", encoding="utf-8") as out:
                            out.write(json.dumps(kept[keys[seed]]) + "\n")
    shown = [*labels.values(), *filter(None, options.show.split(","))]
    for name in designs:
        of_all = [
            [kept[name, options.rows, seed, label] for label in shown]
            for seed in range(options.first, end)
            if all((name, options.rows, seed, label) in kept for label in shown)
        ]
        if not of_all:
            continue
        found = {
            label: {k: np.array([one[k] for one in answers]) for k in ("b", "se", "half")}
            for label, answers in zip(shown, zip(*of_all, strict=True), strict=True)
        }
        summarise(name, found, options.beside, options.rows)


if __name__ == "__main__":
    main()
