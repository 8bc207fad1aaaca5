"""`glfm classify` with a task column: tasks share experts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glfm_cli.classification import keeping

TYPES = (
    "columns: {id: id, field: task, a: real, b: real, mine: {type: categorical, role: target}}\n"
)
FAST = (
    *("--chains", "1", "--set", "experts=3", "--set", "shared_experts=6"),
    *("--set", "iterations=6", "--set", "short=3"),
)


def table(n: int, seed: int, fields: str = "pqrs", gaps: float = 0.1) -> str:
    """Return fields of two kinds, told apart by `a`, in which mines go by `b` in opposite ways."""
    rng = np.random.default_rng(seed)
    lines = ["id,field,a,b,mine"]
    for i in range(n):
        field = fields[i % len(fields)]
        kind = "pqrs".index(field) % 2
        a, b = rng.normal(4.0 * kind, 1.0), rng.normal()
        cells = ["" if rng.random() < gaps else f"{value:.3f}" for value in (a, b)]
        lines.append(",".join([f"r{i}", field, *cells, "yes" if (b > 0) == kind else "no"]))
    return "\n".join(lines) + "\n"


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def classify(desk: Any, here: Callable[..., Any]) -> Callable[..., Any]:
    """Run `glfm classify` on train.csv, predicting new.csv."""
    desk.put("train.csv", table(60, 1))
    desk.put("new.csv", table(40, 2))
    desk.put("types.yaml", TYPES)

    def run(*options: str) -> Any:
        given = ("--types", "types.yaml", "--predict", "new.csv", *FAST, *options)
        return here("classify", "train.csv", *given)

    return run


def test_tasks_are_predicted_compared_and_kept(
    classify: Any, desk: Any, here: Callable[..., Any]
) -> None:
    files = ("--similarity", "alike.csv", "--plot", "alike.svg", "--save", "mines.glfm")
    files += ("--nearness", "near.csv")
    files += ("--set", "slips=0.1")  # which all fits that predict together know again
    said = classify("-o", "out.csv", "--complete", "full.csv", "--json", *files)
    assert said.status == 0, said.stderr
    summary = json.loads(said.stdout)
    assert summary["scores"]["auc"] > 0.7
    assert summary["features"] == 2
    assert summary["fit"]["own_precision"] > 0.0
    assert list(summary["fit"]["pooling"]) == ["partial", "complete"]
    assert sum(summary["fit"]["pooling"].values()) == pytest.approx(1.0)
    alike = {row["task"]: row for row in rows_of((desk.folder / "alike.csv").read_text())}
    assert list(alike) == list("pqrs")
    assert float(alike["p"]["p"]) == pytest.approx(1.0)
    assert alike["p"]["q"] == alike["q"]["p"]
    assert float(alike["p"]["r"]) > float(alike["p"]["q"])
    near = {row["task"]: row for row in rows_of((desk.folder / "near.csv").read_text())}
    assert float(near["p"]["r"]) > 0.8 > 0.5 > float(near["p"]["q"])
    assert float(near["q"]["s"]) == pytest.approx(summary["tasks"]["nearness"][1][3])
    assert summary["tasks"]["names"] == list("pqrs")
    assert np.allclose(np.sum(summary["tasks"]["shares"], axis=1), 1.0)
    assert (desk.folder / "alike.svg").read_text().startswith("<?xml")
    assert all(row["a"] for row in rows_of((desk.folder / "full.csv").read_text()))
    again = here("classify", "new.csv", "--fit", "mines.glfm", "--similarity", "again.csv")
    assert again.status == 0, again.stderr
    assert again.stdout == (desk.folder / "out.csv").read_text()
    assert (desk.folder / "again.csv").read_text() == (desk.folder / "alike.csv").read_text()


@pytest.mark.parametrize("own_rules", ["false", "true"])
def test_a_fit_of_tasks_alone_is_kept(
    own_rules: str, classify: Any, desk: Any, here: Callable[..., Any]
) -> None:
    """Nothing predicts beside the shared experts."""
    said = classify("--save", "a.glfm", "--set", "stack=false", "--set", f"own_rules={own_rules}")
    assert said.status == 0, said.stderr
    again = here("classify", "new.csv", "--fit", "a.glfm")
    assert again.status == 0, again.stderr
    assert again.stdout == said.stdout


def pixels(n: int, seed: int) -> str:
    """Return two fields of many columns, one of which varies in one field alone."""
    rng = np.random.default_rng(seed)
    names = [f"x{d}" for d in range(102)]
    lines = [",".join(["id", "field", *names, "mine"])]
    for i in range(n):
        x = rng.normal(size=102)
        x[1] *= i % 2
        mine = "yes" if (x[0] > 0) == i % 2 else "no"
        lines.append(",".join([f"r{i}", "pq"[i % 2], *(f"{value:.2f}" for value in x), mine]))
    return "\n".join(lines) + "\n"


def test_tasks_of_many_features_are_left_alone_too_and_kept(
    classify: Any, desk: Any, here: Callable[..., Any]
) -> None:
    one = pixels(1, 3).splitlines()[1].replace("r0,p,", "only,r,")
    desk.put("train.csv", pixels(24, 1) + one + "\n")
    desk.put("new.csv", pixels(6, 2) + one + "\n")
    types = "".join(f"  x{d}: real\n" for d in range(102))
    target = "  mine: {type: categorical, role: target}\n"
    desk.put("types.yaml", "columns:\n  id: id\n  field: task\n" + types + target)
    files = ("-o", "out.csv", "--save", "pixels.glfm", "--similarity", "alike.csv")
    said = classify("--json", "--set", "factors=2", "--set", "iterations=2", *files)
    assert said.status == 0, said.stderr
    ways = json.loads(said.stdout)["fit"]["pooling"]
    assert list(ways) == ["partial", "complete", "none"]
    assert all(weight > 0.0 for weight in ways.values())
    again = here("classify", "new.csv", "--fit", "pixels.glfm", "--similarity", "again.csv")
    assert again.status == 0, again.stderr
    assert again.stdout == (desk.folder / "out.csv").read_text()
    assert (desk.folder / "again.csv").read_text() == (desk.folder / "alike.csv").read_text()


def test_a_time_limit_leaves_shared_experts(classify: Any, desk: Any) -> None:
    said = classify("--time-limit", "1e-9", "--json", "-o", "out.csv")
    assert said.status == 0, said.stderr
    summary = json.loads(said.stdout)
    assert summary["stopped"] == "time limit"
    assert summary["fit"]["iterations"] == 1
    assert "pooling" not in summary["fit"]
    assert summary["fit"]["own_precision"] == 1000.0
    assert len(rows_of((desk.folder / "out.csv").read_text())) == 40


def test_weights_that_do_not_fit_are_not_read(
    classify: Any, desk: Any, here: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "NAMES", ("partial",))  # keeps one weight of two
    assert classify("--save", "odd.glfm").status == 0
    error = "odd.glfm: cannot be used: 'weights' does not fit"
    desk.check_rejected(error, here, "classify", "new.csv", "--fit", "odd.glfm")


def test_a_new_row_may_be_of_no_known_task(classify: Any, desk: Any) -> None:
    desk.put("new.csv", "id,field,a,b\n1,,4,2\n2,z,4,2\n")
    desk.check_rejected("new.csv, column 'field', row 2: found 'z', expected", classify)
    said = classify("--unseen", "missing")
    assert said.status == 0, said.stderr
    first, second = rows_of(said.stdout)
    assert first["p_yes"] == second["p_yes"]


def test_every_training_row_needs_a_task(classify: Any, desk: Any) -> None:
    desk.put("train.csv", table(60, 1).replace("r4,p,", "r4,,"))
    error = "train.csv, column 'field', row 5: the row's task is missing, expected"
    desk.check_rejected(error, classify)


def test_one_task_shares_nothing(classify: Any, desk: Any) -> None:
    desk.put("train.csv", table(30, 1, fields="p"))
    desk.put("new.csv", table(5, 2, fields="p"))
    said = classify()
    assert said.status == 0, said.stderr
    assert any("all rows belong to one task" in line for line in said.lines("Warning"))
    desk.put("types.yaml", TYPES.replace("field: task", "field: ignore"))
    assert classify().stdout == said.stdout
    desk.check_rejected("--plot: there is only one task", classify, "--plot", "x.png")


def test_a_task_of_one_row_and_cross_validation(
    classify: Any, desk: Any, here: Callable[..., Any]
) -> None:
    text = table(30, 1, fields="pq")
    desk.put("train.csv", text + "only,r,0.1,1.0,no\n")
    said = here("classify", "train.csv", "--types", "types.yaml", "--cv", "2", *FAST)
    assert said.status == 0, said.stderr
    assert said.stdout.startswith("'mine' of 31 rows")


def test_a_task_is_no_target(classify: Any, desk: Any) -> None:
    error = "types.yaml, column 'field': the target has role task"
    desk.check_rejected(error, classify, "--target", "field")
