"""`glfm classify` with a column of many levels: kept, read, predicted with, shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ROWS, SITES = 200, 24


def table(labels: int, seed: int) -> list[str]:
    """Return lines of a number, a site that tells of the label, and the label."""
    rng = np.random.default_rng(seed)
    effect = 2.0 * rng.standard_normal((SITES, labels))
    lines = []
    for _ in range(ROWS):
        site, z = rng.integers(SITES), rng.standard_normal()
        label = np.argmax(effect[site] + rng.gumbel(size=labels))
        lines.append(f"{z:.3f},{'' if rng.random() < 0.1 else f'site {site:02d}'},C{label}")
    return lines


@pytest.mark.parametrize("labels", [2, 3])
def test_many_levels_are_kept_completed_and_explored(
    desk: Any, here: Callable[..., Any], labels: int, seed: int
) -> None:
    lines = table(labels, seed)
    desk.put("train.csv", "\n".join(["z,site,label", *lines]) + "\n")
    features = [line.rsplit(",", 1)[0] for line in lines]
    desk.put("new.csv", "\n".join(["z,site", *features]) + "\n")
    assert here("types", "train.csv", "-o", "types.yaml").status == 0
    fit = ("--types", "types.yaml", "--target", "label", "--chains", "2", "--save", "fit.glfm")
    out = ("--predict", "new.csv", "-o", "first.csv", "--complete", "completed.csv")
    said = here("classify", "train.csv", *fit, *out)
    assert said.status == 0, said.stderr
    again = here("classify", "new.csv", "--fit", "fit.glfm", "-o", "second.csv")
    assert again.status == 0, again.stderr
    names = ("first", "second", "completed")
    written = {name: (desk.folder / f"{name}.csv").read_text() for name in names}
    first = written["first"]
    assert written["second"] == first
    predicted = [line.split(",")[1] for line in first.splitlines()[1:]]
    truth = [line.rsplit(",", 1)[1] for line in lines]
    assert np.mean([a == b for a, b in zip(predicted, truth, strict=True)]) > 0.6
    completed = written["completed"].splitlines()[1:]
    for was, now in zip(features, completed, strict=True):
        assert now == was or (was.endswith(",") and now.startswith(f"{was}site "))
    shown = here("explore", "fit.glfm")
    assert shown.status == 0, shown.stderr
    assert ("site for C2" if labels == 3 else "with site ") in shown.stdout
