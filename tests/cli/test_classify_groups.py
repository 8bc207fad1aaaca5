"""`glfm classify --cv` where rows belong together: those of a group are held out together."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from glfm_cli.classification.stratified import grouped_folds

FAST = ("--chains", "1", "--set", "experts=4", "--set", "iterations=20", "--threads", "1")
TYPES = """\
columns:
  patient: {role: ROLE}
  street: categorical
  y: {type: categorical, levels: ["no", "yes"]}
rest: real
"""


def visits(n_patients: int = 24, n_visits: int = 4) -> str:
    """Return visits of patients, told apart by where they live, which says nothing of labels."""
    rng = np.random.default_rng(2)
    lines = ["patient,street,a,y"]
    for i in range(n_patients):
        who = f"P{i},S{i}", ("no", "yes")[i % 2]
        lines += [f"{who[0]},{rng.normal():.2f},{who[1]}" for _ in range(n_visits)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def cross_validate(desk: Any, here: Any) -> Any:
    """Run `glfm classify --cv` on visits, the patients under the role that is given."""
    desk.put("train.csv", visits())
    for role in ("group", "id"):
        desk.put(f"{role}.yaml", TYPES.replace("ROLE", role))

    def run(role: str, *options: str) -> Any:
        types = "--types", f"{role}.yaml", "--target", "y"
        return here("classify", "train.csv", *types, *FAST, *options)

    return run


def test_rows_of_a_group_are_held_out_together(cross_validate: Any, desk: Any) -> None:
    said = cross_validate("group", "--cv", "4", "-o", "out.csv", "--json")
    assert said.status == 0, said.stderr
    found = list(csv.DictReader(io.StringIO((desk.folder / "out.csv").read_text())))
    pairs = {(row["patient"], row["fold"]) for row in found}
    assert len({patient for patient, _ in pairs}) == len(pairs) == 24
    auc = json.loads(said.stdout)["cross_validation"]["scores"]["iqgme"]["auc"]
    assert auc < 0.7


def test_ids_that_rows_share_are_warned_of(cross_validate: Any) -> None:
    said = cross_validate("id", "--cv", "4", "-o", "out.csv", "--json")
    auc = json.loads(said.stdout)["cross_validation"]["scores"]["iqgme"]["auc"]
    assert auc > 0.9
    assert "column 'patient': rows share its 24 values, and are in different folds" in said.stderr


def test_there_are_no_more_folds_than_groups(cross_validate: Any, desk: Any) -> None:
    error = "--cv, found 25, expected at most 24, the groups of labelled rows"
    desk.check_rejected(error, cross_validate, "group", "--cv", "25")


def test_a_label_of_one_group_cannot_be_held_out(cross_validate: Any, desk: Any) -> None:
    head, *lines = visits().splitlines()
    own = [line for line in lines if line.startswith("P1,") or line.endswith(",no")]
    desk.put("train.csv", "\n".join([head, *own]))
    error = "column 'y': all rows labelled 'yes' are of one group, and --cv holds it out"
    desk.check_rejected(error, cross_validate, "group", "--cv", "2")


def test_a_kept_fit_predicts_rows_without_their_group(
    cross_validate: Any, desk: Any, here: Any
) -> None:
    assert cross_validate("group", "--save", "kept.glfm").status == 0
    rows = [line.partition(",") for line in visits(3).splitlines()]
    desk.put("with.csv", "\n".join("".join(parts) for parts in rows))
    desk.put("without.csv", "\n".join(parts[2] for parts in rows))
    said = [here("classify", name, "--fit", "kept.glfm") for name in ("with.csv", "without.csv")]
    with_ids, without = (list(csv.DictReader(io.StringIO(one.stdout))) for one in said)
    assert [row["p_yes"] for row in with_ids] == [row["p_yes"] for row in without]
    assert [row["patient"] for row in with_ids] == [f"P{i}" for i in range(3) for _ in range(4)]


def test_folds_of_groups_have_alike_shares_of_rare_labels(seed: int) -> None:
    rng, apart = np.random.default_rng(seed), []
    for _ in range(20):  # some of the larger groups have rare labels among others
        group = np.repeat(np.arange(60), rng.integers(5, 30, 60))
        often = np.where(rng.random(60) < 0.2, 0.3, 0.0)
        code = (rng.random(group.size) < often[group]).astype(float)
        fold = grouped_folds(code, group, 5, rng)
        assert all(np.unique(fold[group == g]).size == 1 for g in range(60))
        rows, rare = np.bincount(fold, minlength=5), np.bincount(fold[code == 1], minlength=5)
        apart.append((np.ptp(rows), np.ptp(rare)))
    rows, rare = np.mean(apart, axis=0)
    assert rows < 9.0
    assert rare < 4.0
