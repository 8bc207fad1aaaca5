"""The two public explorations of the GLFM article [GLFM, sections 5.2.2 and 5.2.4], seed by seed.

    python benchmarks/explore_papers.py FOLDER [prostate|counties] [SEED ...]

FOLDER holds `prostate_glfm5.parquet` (the five recoded columns of Byar and Green's trial) with its
types file, and `counties.parquet` (Counties of the USA, 1992), both as the authors' software has
them. Printed are the tables of features and patterns, and whether the article's findings are among
what is listed:

prostate  (a) a feature joins the highest dose with more vascular and less prostatic death;
          (b) a feature joins stage 4 with high acid phosphatase and more prostatic death;
          (c) the pattern with nothing on is the commonest, and mostly stage 3.
counties  the five commonest patterns cover 70 % of the rows; among them one leans to Perot and one
          to the Democrat, each compared with all rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from glfm_cli import Exploration, explore, read_table
from glfm_cli.exploration import Feature
from glfm_cli.exploration.features import Effect

ARTICLE: dict[str, object] = {"alpha": 5, "weight_variance": 1, "threshold_variance": 1}
COUNTIES: dict[str, Any] = {
    "rest": "ignore",
    "columns": {
        "state": "categorical",
        "pop.density": {"type": "positive", "transform": "log1p"},
        "white": {"type": "positive", "transform": "log", "reflect": 101},
        "age65": "positive",
        "college": "positive",
        "income": {"type": "positive", "transform": "log1p"},
        "farm": {"type": "positive", "transform": "log1p"},
        "democrat": "positive",
        "republican": "positive",
        "Perot": "positive",
    },
}


def prostate(folder: Path, seed: int) -> dict[str, bool]:
    """Explore the trial with the article's settings, and print and judge what comes out."""
    found = explore(
        folder / "prostate_glfm5.parquet",
        folder / "prostate_glfm5.types.yaml",
        chains=5,
        warmup=1000,
        draws=50,
        thin=5,
        seed=seed,
        settings={**ARTICLE, "link": "paper"},
        sample="best",  # as the article does
        top=9,
    )
    show(found)
    first = found.patterns[0]
    stage = found.data.columns[0].x
    said = {"a": _joins_dose, "b": _joins_stage}
    with_it = {key: [one for one in found.features if judge(one)] for key, judge in said.items()}
    for key, features in with_it.items():
        for feature in features:
            by = _effects(feature)
            gains = [
                f"{level} {_gain(by[name], level):+.2f}"
                for name, level in (
                    *(("rx3", "5"), ("stage", "4")),
                    *(("status4", "vascular"), ("status4", "prostatic ca")),
                )
            ]
            print(f"({key}) {feature.name}, stability {feature.stability:.2f}: {', '.join(gains)}")
    return {
        "a": bool(with_it["a"]),
        "b": bool(with_it["b"]),
        "c": not first.bits.any() and float(np.mean(stage[first.rows] == 0)) > 0.5,
    }


def _joins_dose(feature: Feature) -> bool:
    by = _effects(feature)
    return (
        _gain(by["rx3"], "5") > 0.1
        and _gain(by["status4"], "vascular") > 0
        and _gain(by["status4"], "prostatic ca") < 0
    )


def _joins_stage(feature: Feature) -> bool:
    by = _effects(feature)
    return (
        _gain(by["stage"], "4") > 0.2
        and by["ap"].change > 0
        and _gain(by["status4"], "prostatic ca") > 0
    )


def counties(folder: Path, seed: int) -> dict[str, bool]:
    """Explore the counties with the article's columns, and print and judge what comes out."""
    table = read_table(folder / "counties.parquet")
    table = table.append_column("age65", pc.add(table["age6574"], table["age75"]))
    began = time.monotonic()
    found = explore(table, COUNTIES, seed=seed, settings=ARTICLE)
    seconds = time.monotonic() - began
    show(found)
    print(f"{seconds:.0f} s in all")
    leans = {name: _leaning(found, name) for name in ("Perot", "democrat")}
    for name, states in leans.items():
        print(f"leaning to {name}: {states}")
    return {
        "cover": found.top_patterns[-1].cumulative >= 0.7,
        "Perot": bool(leans["Perot"]),
        "Democrat": bool(leans["democrat"]),
        "time": seconds < 300,
    }


def _leaning(found: Exploration, name: str) -> list[str]:
    """Return the patterns shown whose mean vote is 2 points above all rows', with their states."""
    place = [scale.name for scale in found.scales].index(name)
    state = found.data.columns[0]
    said = []
    for pattern in found.top_patterns:
        mean, base = pattern.profiles[place].mean, found.baseline[place].mean
        if mean > base + 2:
            counts = np.bincount(state.x[pattern.rows].astype(int), minlength=len(state.levels))
            of_state = np.bincount(state.x.astype(int), minlength=len(state.levels))
            live = np.argsort(-counts / np.maximum(of_state, 8))[:6]
            states = " ".join(state.levels[s] for s in live)
            said.append(f"{pattern.name} {mean:.1f} against {base:.1f} ({states})")
    return said


def show(found: Exploration) -> None:
    """Print the features and the patterns."""
    print(f"null level of |z| {found.null_level:.2f}")
    for feature in found.features:
        print(
            f"{feature.name} share {feature.share:.3f} explains {feature.explained:.2f} stability "
            f"{feature.stability:.2f} ± {feature.stability_error:.2f}, in halves "
            f"{feature.halves:.2f} ± {feature.halves_error:.2f}, largest |z| "
            f"{max(abs(effect.z) for effect in feature.effects):.1f}: {found.in_words(feature)}"
        )
    print(f"of {found.n_features}; the others: {found.remainder}")
    for pattern in found.top_patterns:
        print(
            f"{pattern.name} {pattern.share:.4f} cumulative {pattern.cumulative:.3f} "
            f"stability {pattern.stability:.2f}"
        )


def _effects(feature: Feature) -> dict[str, Effect]:
    return {effect.scale.name: effect for effect in feature.effects}


def _gain(effect: Effect, level: str) -> float:
    at = effect.scale.encoded.levels.index(level)
    return float(effect.on.mass[at] - effect.off.mass[at])


def main(folder: Path, name: str, seeds: Sequence[int]) -> None:
    """Print each seed, then how many seeds show each finding."""
    judged = []
    for seed in seeds:
        print(f"\n{name}, seed {seed}")
        judged.append({"prostate": prostate, "counties": counties}[name](folder, seed))
        print(judged[-1], flush=True)
    print()
    for key in judged[0]:
        print(f"{key}: {sum(one[key] for one in judged)} of {len(judged)} seeds")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], [int(text) for text in sys.argv[3:]] or list(range(5)))
