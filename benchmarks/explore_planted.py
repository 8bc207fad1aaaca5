"""What `explore` lists of planted features, whether it is right, and what it lists of noise.

    python benchmarks/explore_planted.py            # all 50 tables, about half an hour on 2 cores
    python benchmarks/explore_planted.py 0 1 40     # some of them, by number
    python benchmarks/explore_planted.py --results FILE    # a line a table is kept in FILE; those
                                                    # that have one already are not explored again

The generator is `planted`: five binary features on 5, 16, 28, 39 and 50 % of 2,000 rows, each of
which moves 8 of 20 columns (four of each type) up or down by 0.5, 1 or 2 standard deviations of the
noise; a tenth of the cells is missing. Tables 0-13 have effect 2, 14-26 effect 1, 27-39 effect
0.5; 40-49 are noise.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli import Exploration, explore
from glfm_cli.exploration import Feature

N_ROWS, N_TABLES = 2000, 50
SHARES = np.linspace(0.05, 0.5, 5)
KINDS = ("real", "positive", "count", "categorical", "ordinal")
PER_KIND, TOUCHED, MISSING = 4, 8, 0.1
MATCH = 0.5  # |phi| from which a feature found counts as one of those planted


@dataclass(frozen=True)
class Planted:
    """A table with its types, who has which feature (N, K), and what each adds (K, D)."""

    table: pa.Table
    types: dict[str, Any]
    Z: np.ndarray
    weights: np.ndarray
    effect: float


def effect_of(number: int) -> float:
    """Return the effect planted in a table, in standard deviations of the noise."""
    return 2.0 if number < 14 else 1.0 if number < 27 else 0.5 if number < 40 else 0.0


def planted(number: int, n_rows: int = N_ROWS) -> Planted:
    """Return table `number` of the 50."""
    rng = np.random.default_rng([20260, number])
    n_columns = PER_KIND * len(KINDS)
    effect = effect_of(number)
    Z = rng.random((n_rows, SHARES.size)) < SHARES
    weights = np.zeros((SHARES.size, n_columns))
    for k in range(SHARES.size):
        touched = rng.permutation(n_columns)[:TOUCHED]
        weights[k, touched] = effect * rng.choice([-1.0, 1.0], TOUCHED)
    y = Z @ weights + rng.standard_normal((n_rows, n_columns))
    columns, types = {}, {}
    for d in range(n_columns):
        kind = KINDS[d % len(KINDS)]
        x = _cells(kind, y[:, d], rng).astype(object)
        x[rng.random(n_rows) < MISSING] = None
        name = f"{kind}_{d // len(KINDS) + 1}"
        columns[name] = pa.array(x.tolist())
        types[name] = {"type": kind}
        if kind == "ordinal":
            types[name] = {"type": kind, "levels": ["low", "mid", "high", "top"]}
    keep = slice(None) if effect else slice(0, 0)
    return Planted(pa.table(columns), {"columns": types}, Z[:, keep], weights[keep], effect)


def _cells(kind: str, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if kind == "real":
        return 10 + 3 * y
    if kind == "positive":
        return np.exp(1 + 0.4 * y)
    if kind == "count":
        return np.floor(4 * np.logaddexp(0, 1 + 0.8 * y)).astype(int)
    if kind == "categorical":  # level a has utility y, the others 0
        others = rng.standard_normal((y.size, 2))
        return np.array(["a", "b", "c"])[np.argmax(np.column_stack([y, others]), axis=1)]
    return np.array(["low", "mid", "high", "top"])[np.searchsorted([-0.8, 0.0, 0.8], y)]


@dataclass(frozen=True)
class Outcome:
    """How one table came out.

    accuracy : (K,) share of rows whose membership is right, of the best match of each feature
    named, right : columns named in words, and how many of them were planted with that direction
    stability, error, halves, real : (F,) of the features listed; the last: matches a planted one
    others : features of the draw that are not listed
    """

    number: int
    effect: float
    accuracy: np.ndarray
    named: int
    right: int
    stability: np.ndarray
    error: np.ndarray
    halves: np.ndarray
    real: np.ndarray
    others: int
    seconds: float


def judge(number: int, truth: Planted, found: Exploration) -> Outcome:
    """Compare an exploration with what was planted."""
    n_planted = truth.Z.shape[1]
    accuracy = np.full(n_planted, 0.5)
    real = np.zeros(len(found.features), dtype=bool)
    named = right = 0
    for i, feature in enumerate(found.features):
        member = feature.probability > 0.5
        phi = np.array([np.corrcoef(member, z)[0, 1] for z in truth.Z.T])
        if not phi.size or np.nanmax(np.abs(phi)) < MATCH:
            continue
        real[i] = True
        k = int(np.nanargmax(np.abs(phi)))
        agree = float(np.mean(member == truth.Z[:, k]))
        if max(agree, 1 - agree) > accuracy[k]:
            accuracy[k] = max(agree, 1 - agree)
        told = _directions(feature)
        named += len(told)
        signs = np.sign(truth.weights[k]) * np.sign(phi[k])
        right += sum(bool(signs[d] == direction) for d, direction in told)
    numbers = [(f.stability, f.stability_error, f.halves) for f in found.features]
    shown = np.array(numbers).reshape(-1, 3).T
    others = found.remainder.number
    return Outcome(
        number, truth.effect, accuracy, named, right, *shown, real, others, found.seconds
    )


def _directions(feature: Feature) -> list[tuple[int, int]]:
    """Return the columns that the words name, each with the direction they say."""
    told = []
    for effect in [effect for effect in feature.effects if effect.credible][:4]:
        if effect.size < 0.05:
            break
        if effect.scale.ordered:
            direction = {"higher": 1, "lower": -1}.get(effect.direction, 0)
        else:  # more or less of level a
            change = effect.on.mass - effect.off.mass
            direction = int(np.sign(change[effect.scale.encoded.levels.index("a")]))
        told.append((effect.scale.d, direction))
    return told


def run(number: int, **options: Any) -> Outcome:
    """Explore one of the tables and judge what came out."""
    truth = planted(number)
    return judge(number, truth, explore(truth.table, truth.types, seed=number, **options))


def line(one: Outcome) -> str:
    """Return how one table came out, as text."""
    return (
        f"table {one.number:2d} effect {one.effect:3.1f}: accuracy {np.round(one.accuracy, 3)}, "
        f"words {one.right}/{one.named}, stability {np.round(one.stability, 2)}, in halves "
        f"{np.round(one.halves, 2)}, of which real {one.real.astype(int)}, "
        f"{one.others} not listed, {one.seconds:.0f} s"
    )


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a line an effect."""
    said = []
    for effect in (2.0, 1.0, 0.5, 0.0):
        some = [one for one in outcomes if one.effect == effect]
        if not some:
            continue
        accuracy = np.concatenate([one.accuracy for one in some])
        found = int(np.sum(accuracy > 0.5))
        empty = sum(not one.real.size for one in some)
        spread = f"{accuracy.mean():.3f}, least {accuracy.min():.3f}" if accuracy.size else "-"
        said.append(
            f"effect {effect}: {len(some)} tables, {empty} list nothing, accuracy {spread}, "
            f"{found} of {accuracy.size} found, words right "
            f"{sum(o.right for o in some)}/{sum(o.named for o in some)}, listed "
            f"{sum(o.real.size for o in some)} of which planted {sum(o.real.sum() for o in some)}"
        )
    return said


def kept(path: Path) -> dict[int, Outcome]:
    """Return the outcomes that a file of results holds, by the number of their table."""
    found = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        said = json.loads(text)
        arrays = {key: np.array(said[key]) for key in ("accuracy", "stability", "error", "halves")}
        one = Outcome(**{**said, **arrays, "real": np.array(said["real"], dtype=bool)})
        found[one.number] = one
    return found


def main(numbers: Sequence[int], results: Path | None) -> None:
    """Print a line a table, and the summary."""
    before = {} if results is None else kept(results)
    outcomes = []
    for number in numbers:
        one = before.get(number) or run(number)
        outcomes.append(one)
        print(line(one), flush=True)
        if results is not None and number not in before:
            said = {
                k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in asdict(one).items()
            }
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(said) + "\n")
    print("\n".join(summary(outcomes)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("numbers", nargs="*", type=int, metavar="TABLE")
    parser.add_argument("--results", type=Path, metavar="FILE")
    asked = parser.parse_args()
    main(asked.numbers or range(N_TABLES), asked.results)
