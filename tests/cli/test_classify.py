"""`glfm classify`: probabilities of labels, for rows with missing cells."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glfm_cli import classify as classify_table
from glfm_cli.classification.classify import plan_request
from glfm_cli.cli.console import Console
from glfm_cli.cli.progress import STEPS, FitProgress
from glfm_cli.errors import UsageError
from glfm_cli.io import read_table
from glfm_cli.options import STARTS, Sampling, Saving
from tests.cli.terminal import OnTerminal

TYPES = """\
columns:
  id: id
  a: real
  b: real
  step: {type: ordinal, levels: [low, mid, high]}
  kind: {type: categorical, levels: [x, "y", z]}
  sick: {type: categorical, levels: ["no", "yes"]}
"""
FAST = ("--chains", "2", "--set", "experts=4", "--set", "iterations=30", "--set", "short=5")


def table(n: int, seed: int, gaps: float = 0.2, unlabelled: float = 0.1) -> str:
    """Return a CSV table whose label depends on where a row lies."""
    rng = np.random.default_rng(seed)
    lines = ["id,a,b,step,kind,sick"]
    for i in range(n):
        group = rng.integers(2)
        a, b = rng.normal(4.0 * group, 1.0), rng.normal(0.0, 1.0)
        sick = (b > 0) == (group == 1)
        step = ["low", "mid", "high"][int(np.digitize(a, [0.5, 3.5]))]
        kind = rng.choice(["x", "y", "z"], p=[0.7, 0.2, 0.1] if group else [0.1, 0.2, 0.7])
        cells = [f"{a:.3f}", f"{b:.3f}", step, str(kind)]
        cells = ["" if rng.random() < gaps else cell for cell in cells]
        label = "" if rng.random() < unlabelled else "yes" if sick else "no"
        lines.append(",".join([f"r{i}", *cells, label]))
    return "\n".join(lines) + "\n"


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def classify(desk: Any, here: Callable[..., Any]) -> Callable[..., Any]:
    """Run `glfm classify` on train.csv, whose target is `sick`, with a short fit."""
    desk.put("train.csv", table(80, 1))
    desk.put("types.yaml", TYPES)

    def run(*options: str, target: str = "sick", train: str = "train.csv") -> Any:
        return here("classify", train, "--types", "types.yaml", "--target", target, *FAST, *options)

    return run


# Results -------------------------------------------------------------------------------------


def test_rows_without_a_label_are_predicted(classify: Any) -> None:
    said = classify()
    assert said.status == 0, said.stderr
    training = rows_of(table(80, 1))
    unlabelled = [row["id"] for row in training if not row["sick"]]
    found = rows_of(said.stdout)
    assert list(found[0]) == ["row", "id", "predicted", "p_no", "p_yes"]
    assert [row["id"] for row in found] == unlabelled
    assert [training[int(row["row"]) - 1]["id"] for row in found] == unlabelled
    for row in found:
        p = {level: float(row[f"p_{level}"]) for level in ("no", "yes")}
        assert sum(p.values()) == pytest.approx(1.0)
        assert row["predicted"] == max(p, key=p.__getitem__)
    assert "labelled rows of 80, 4 features" in said.stderr


def test_new_rows_are_predicted_better_than_by_chance(classify: Any, desk: Any) -> None:
    new = table(100, 2, gaps=0.0, unlabelled=0.0)
    desk.put("new.csv", new)
    said = classify("--predict", "new.csv", "-o", "out.csv", "--json")
    assert said.status == 0, said.stderr
    found = rows_of((desk.folder / "out.csv").read_text())
    assert [row["sick"] for row in found] == [row["sick"] for row in rows_of(new)]
    scores = json.loads(said.stdout)["scores"]
    right = np.mean([row["sick"] == row["predicted"] for row in found])
    assert scores["accuracy"] == pytest.approx(right)
    assert scores["auc"] > 0.8


def test_new_rows_need_no_label(classify: Any, desk: Any) -> None:
    lines = table(5, 3).splitlines()
    desk.put("new.csv", "\n".join(line.rpartition(",")[0] for line in lines) + "\n")
    said = classify("--predict", "new.csv")
    assert said.status == 0, said.stderr
    assert [row["id"] for row in rows_of(said.stdout)] == [f"r{i}" for i in range(5)]
    assert "sick" not in rows_of(said.stdout)[0]


def test_what_is_predicted_does_not_depend_on_labels_that_are_there(
    classify: Any, desk: Any
) -> None:
    lines = table(5, 3, unlabelled=0.0).splitlines()
    desk.put("with.csv", "\n".join(lines) + "\n")
    desk.put("without.csv", "\n".join([lines[0], *(r.rpartition(",")[0] + "," for r in lines[1:])]))
    found = [rows_of(classify("--predict", f"{name}.csv").stdout) for name in ("with", "without")]
    assert [row["p_yes"] for row in found[0]] == [row["p_yes"] for row in found[1]]


def test_rows_that_were_learnt_from_are_no_test_of_a_fit(classify: Any, desk: Any) -> None:
    seen = "the rows to predict are those that were learnt from"
    assert seen in classify("--predict", "train.csv").stderr
    lines = table(80, 1).splitlines()
    desk.put("fewer.csv", "\n".join(lines[:-1]) + "\n")
    unlabelled = [lines[0], *(line.rpartition(",")[0] + "," for line in lines[1:])]
    desk.put("bare.csv", "\n".join(unlabelled) + "\n")
    for name in ("fewer", "bare"):
        assert seen not in classify("--predict", f"{name}.csv").stderr


def test_more_than_two_labels(classify: Any) -> None:
    said = classify(target="kind")
    assert said.status == 0, said.stderr
    for row in rows_of(said.stdout):
        assert sum(float(row[f"p_{level}"]) for level in "xyz") == pytest.approx(1.0)


def test_threads_and_repetition_change_nothing(classify: Any) -> None:
    first = classify("--threads", "1").stdout
    assert classify("--threads", "3").stdout == first
    assert classify("--threads", "1").stdout == first


def test_a_row_without_features_gets_the_overall_shares(classify: Any, desk: Any) -> None:
    desk.put("new.csv", "id,a,b,step,kind\nnone,,,,\n")
    (row,) = rows_of(classify("--predict", "new.csv").stdout)
    labels = [row["sick"] for row in rows_of(table(80, 1)) if row["sick"]]
    assert float(row["p_yes"]) == pytest.approx(labels.count("yes") / len(labels), abs=0.15)


def test_a_constant_feature_changes_nothing(classify: Any, desk: Any) -> None:
    before = classify().stdout
    lines = table(80, 1).splitlines()
    desk.put("more.csv", "\n".join([f"{lines[0]},same", *(f"{line},7" for line in lines[1:])]))
    desk.put("types.yaml", TYPES + "  same: real\n")
    said = classify(train="more.csv")
    assert said.status == 0, said.stderr
    assert said.stdout == before


def test_a_role_names_the_target(classify: Any, desk: Any, here: Callable[..., Any]) -> None:
    types = TYPES.replace(
        '{type: categorical, levels: ["no"', '{type: categorical, role: target, levels: ["no"'
    )
    desk.put("roles.yaml", types)
    said = here("classify", "train.csv", "--types", "roles.yaml", *FAST)
    assert said.stdout == classify().stdout


# Cross-validation ----------------------------------------------------------------------------


def test_cross_validation_scores_the_predictions_it_writes(classify: Any, desk: Any) -> None:
    pytest.importorskip("sklearn")
    said = classify("--cv", "3", "-o", "out.csv")
    assert said.status == 0, said.stderr
    lines = said.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[3:]] == [
        *("iqgme", "logistic, mean", "logistic, conditional mean")
    ]
    found = rows_of((desk.folder / "out.csv").read_text())
    assert len(found) == sum(bool(row["sick"]) for row in rows_of(table(80, 1)))
    assert {row["fold"] for row in found} == {"1", "2", "3"}
    accuracy = np.mean([row["sick"] == row["predicted"] for row in found])
    assert f"{accuracy:.3f}" in lines[3]


@pytest.mark.parametrize("tells", [True, False])
def test_cross_validation_says_when_features_hardly_tell_the_label(
    classify: Any, desk: Any, tells: bool
) -> None:
    rng = np.random.default_rng(3)
    sick = rng.random(120) < 0.4
    a, b = rng.normal(3.0 * sick * tells, 1.0), rng.normal(size=120)
    said = ("yes" if one else "no" for one in sick)
    rows = (f"{x:.3f},{y:.3f},{one}\n" for x, y, one in zip(a, b, said, strict=True))
    desk.put("train.csv", "a,b,sick\n" + "".join(rows))
    desk.put(
        "types.yaml",
        'columns: {a: real, b: real, sick: {type: categorical, levels: ["no", "yes"]}}',
    )
    found = classify("--cv", "3")
    assert ("he features hardly predict the label: the log score is" in found.stderr) != tells


def test_cross_validation_as_json(classify: Any, desk: Any) -> None:
    said = classify("--cv", "2", "-o", "out.csv", "--json")
    found = json.loads(said.stdout)["cross_validation"]
    assert found["folds"] == 2
    assert set(found["scores"]["iqgme"]) == {
        *("auc", "accuracy", "log_score", "brier", "calibration_error")
    }


# A fit that is kept --------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["sick", "kind"])
def test_a_kept_fit_predicts_as_it_did(
    classify: Any, desk: Any, here: Callable[..., Any], target: str
) -> None:
    desk.put("new.csv", table(30, 5))
    said = classify("--predict", "new.csv", "--save", "sick.glfm", target=target)
    assert said.status == 0, said.stderr
    again = here("classify", "new.csv", "--fit", "sick.glfm")
    assert again.status == 0, again.stderr
    assert again.stdout == said.stdout


def test_a_fit_can_be_kept_without_predicting(classify: Any, desk: Any) -> None:
    desk.put("train.csv", table(40, 1, unlabelled=0.0))
    said = classify("--save", "sick.glfm")
    assert (said.status, said.stdout) == (0, ""), said.stderr
    assert (desk.folder / "sick.glfm" / "run.json").exists()


def test_what_shapes_a_fit_has_no_place_beside_one(
    classify: Any, desk: Any, here: Callable[..., Any]
) -> None:
    classify("--save", "sick.glfm")
    error = "--chains and --fit cannot be used together"
    options = ("--fit", "sick.glfm", "--chains", "2")
    desk.check_rejected(error, here, "classify", "train.csv", *options)
    desk.check_rejected("sick.glfm: is already there", classify, "--save", "sick.glfm")
    error = "--cv and --save cannot be used together"
    desk.check_rejected(error, classify, "--save", "b.glfm", "--cv", "2")


CHANGED = {
    "types.yaml": (b"missing: [none]", "is not the types file that the fit was made with"),
    "links.arrow": (b" ", "is not what was written: its hash is another"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_fit_is_not_used(
    classify: Any, desk: Any, here: Callable[..., Any], name: str
) -> None:
    classify("--save", "sick.glfm")
    path, (more, said) = desk.folder / "sick.glfm" / name, CHANGED[name]
    path.write_bytes(path.read_bytes() + more)
    error = f"sick.glfm/{name}: {said}"
    desk.check_rejected(error, here, "classify", "train.csv", "--fit", "sick.glfm")


def test_a_folder_of_another_kind_is_no_classifier(desk: Any, here: Callable[..., Any]) -> None:
    desk.put("train.csv", table(20, 1))
    desk.put("types.yaml", "glfm: 1\nrest: ignore\ncolumns: {a: real, b: real}\n")
    said = ("--types", "types.yaml", "--chains", "1", "--draws", "1", "--warmup", "1")
    made = here("impute", "train.csv", *said, "--save", "other.glfm", "-o", "out.csv")
    assert made.status == 0, made.stderr
    error = "other.glfm/run.json: does not describe a classifier"
    desk.check_rejected(error, here, "classify", "train.csv", "--fit", "other.glfm")


# Completed features --------------------------------------------------------------------------


def test_features_and_labels_are_completed(
    classify: Any, desk: Any, here: Callable[..., Any]
) -> None:
    new = table(40, 5)
    desk.put("new.csv", new)
    options = ("--predict", "new.csv", "--complete", "full.csv", "--save", "sick.glfm")
    said = classify(*options)
    assert said.status == 0, said.stderr
    full = (desk.folder / "full.csv").read_text()
    predicted = {row["id"]: row["predicted"] for row in rows_of(said.stdout)}
    for before, after in zip(rows_of(new), rows_of(full), strict=True):
        for name, was in before.items():
            assert after[name] == was if was else after[name]
        assert before["sick"] or after["sick"] == predicted[before["id"]]
    again = here("classify", "new.csv", "--fit", "sick.glfm", "--complete", "again.csv")
    assert again.status == 0, again.stderr
    assert (desk.folder / "again.csv").read_text() == full


def test_a_completed_number_follows_what_is_known_of_its_row(classify: Any, desk: Any) -> None:
    """`step` is cut from `a`."""
    desk.put("new.csv", "id,a,b,step,kind\n1,,0,low,z\n2,,0,high,x\n")
    assert classify("--predict", "new.csv", "--complete", "full.csv").status == 0
    low, high = rows_of((desk.folder / "full.csv").read_text())
    assert float(low["a"]) < 1.0 < 3.0 < float(high["a"])


# Bad input -----------------------------------------------------------------------------------


def test_one_label_is_not_enough(classify: Any, desk: Any) -> None:
    lines = [line for line in table(80, 1).splitlines() if not line.endswith("yes")]
    desk.put("train.csv", "\n".join(lines))
    error = "train.csv, column 'sick': every observed label is 'no', expected at"
    desk.check_rejected(error, classify)


def test_a_new_row_with_a_label_never_seen(classify: Any, desk: Any) -> None:
    desk.put("new.csv", "id,a,b,step,kind,sick\n1,1,1,low,x,perhaps\n")
    error = "new.csv, column 'sick', row 1: found 'perhaps', expected a level"
    desk.check_rejected(error, classify, "--predict", "new.csv")


def test_an_unseen_level_may_be_taken_as_missing(classify: Any, desk: Any) -> None:
    desk.put("new.csv", "id,a,b,step,kind,sick\n1,1,1,low,w,perhaps\n")
    desk.put("gap.csv", "id,a,b,step,kind,sick\n1,1,1,low,,\n")
    said = classify("--predict", "new.csv", "--unseen", "missing")
    assert said.stdout == classify("--predict", "gap.csv").stdout
    error = "--unseen, found maybe, expected error or missing"
    desk.check_rejected(error, classify, "--unseen", "maybe")


def test_an_unfit_number_may_be_taken_for_the_nearest(desk: Any, here: Any) -> None:
    ages = "".join(f"{age},{'yes' if age > 30 else 'no'}\n" for age in range(60))
    desk.put("ages.csv", "age,old\n" + ages)
    desk.put("ages.yaml", "columns: {age: count, old: {type: categorical, role: target}}\n")
    desk.put("new.csv", "age\n51.6\n-4\n")
    desk.put("near.csv", "age\n52\n0\n")
    learn = "classify", "ages.csv", "--types", "ages.yaml", "--predict"
    said = here(*learn, "new.csv", "--unseen", "missing")
    assert said.stdout == here(*learn, "near.csv").stdout
    assert (
        "2 numbers that the fit cannot hold ('51.6', '-4'): taken for the nearest"
        in " ".join(said.stderr.split())
    )
    error = "new.csv, column 'age', row 1: found '51.6', expected a whole number"
    desk.check_rejected(error, here, *learn, "new.csv")


def test_too_many_labels(classify: Any, desk: Any) -> None:
    desk.put("train.csv", "a,c\n" + "".join(f"{i},l{i}\n" for i in range(51)))
    desk.put("types.yaml", "columns: {a: real, c: categorical}\n")
    error = "train.csv, column 'c': has 51 different labels, expected at"
    desk.check_rejected(error, classify, target="c")


def test_a_target_that_is_not_there(classify: Any, desk: Any) -> None:
    error = "--target: the table has no such column, found 'sik'"
    said = desk.check_rejected(error, classify, target="sik")
    assert said.lines("Hint") == ["Hint: Did you mean 'sick'?"]


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("a", "types.yaml, column 'a': the target has type real, expected type categorical"),
        ("id", "types.yaml, column 'id': the target has role id, so it has no levels"),
    ],
)
def test_a_target_without_levels(classify: Any, desk: Any, target: str, error: str) -> None:
    desk.check_rejected(error, classify, target=target)


def test_a_target_of_numbers_may_be_codes_of_classes(classify: Any) -> None:
    hint = classify(target="a").lines("Hint")[0]
    assert hint.startswith("Hint: Where its values are codes of classes, give 'a' the type cat")


def test_no_target_at_all(classify: Any, desk: Any, here: Callable[..., Any]) -> None:
    options = ("--types", "types.yaml")
    desk.check_rejected("no target is named", here, "classify", "train.csv", *options)


def test_nothing_to_predict(classify: Any, desk: Any) -> None:
    desk.put("train.csv", table(40, 1, unlabelled=0.0))
    desk.check_rejected("there is nothing to predict: every row has a label", classify)


def test_nothing_to_predict_from(classify: Any, desk: Any) -> None:
    desk.put("train.csv", "c\nx\ny\n")
    desk.put("types.yaml", "columns: {c: categorical}\n")
    error = "types.yaml, column 'c': no column is left to predict"
    desk.check_rejected(error, classify, target="c")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--cv", "1"), "--cv, found 1, expected a whole number from 2"),
        (("--cv", "81"), "--cv, found 81, expected at most 72"),
        (("--cv", "2", "--predict", "train.csv"), "--cv and --predict cannot be used together"),
        (("--time-limit", "0"), "--time-limit, found 0.0, expected seconds above 0"),
        (("-o", "train.csv"), "train.csv: --output is the table itself"),
        (("-o", "out.docx"), "out.docx: "),
        (("--json",), "--json and the table both go to standard output"),
        (("--set", "experts=0"), "--set experts, found 0, expected a whole number from 1"),
        (("--set", "expert=3"), "--set expert: no such setting"),
    ],
)
def test_options_that_cannot_be(
    classify: Any, desk: Any, options: tuple[str, ...], error: str
) -> None:
    desk.check_rejected(error, classify, *options)


def test_a_label_of_one_row_cannot_be_held_out(classify: Any, desk: Any) -> None:
    lines = [line for line in table(60, 1).splitlines() if not line.endswith("yes")]
    desk.put("train.csv", "\n".join([*lines, "one,1,1,low,x,yes"]))
    error = "column 'sick': only one row is labelled 'yes'"
    desk.check_rejected(error, classify, "--cv", "2")


def test_features_that_do_not_vary_within_a_group_are_no_problem(desk: Any, here: Any) -> None:
    rng = np.random.default_rng(3)
    names = [f"x{i}" for i in range(12)]
    lines = [",".join([*names, "sick"])]
    for i in range(200):
        side = 1 if rng.random() < 0.5 else -1
        sick = "" if i % 20 == 0 else "yes" if (side > 0) != (rng.random() < 0.1) else "no"
        lines.append(",".join([*[str(side)] * 12, sick]))
    desk.put("same.csv", "\n".join(lines) + "\n")
    columns = "\n".join(f"  {name}: real" for name in names)
    sick = '  sick: {type: categorical, levels: ["no", "yes"]}'
    desk.put("same.yaml", f"columns:\n{columns}\n{sick}\n")
    said = here("classify", "same.csv", "--types", "same.yaml", "--target", "sick", *FAST)
    assert said.status == 0, said.stderr
    found = rows_of(said.stdout)
    assert len(found) == 10
    for row in found:
        side = int(lines[int(row["row"])].split(",")[0])
        assert (float(row["p_yes"]) > 0.7) if side > 0 else (float(row["p_yes"]) < 0.3)


def test_a_time_limit_still_answers(classify: Any) -> None:
    said = classify("--time-limit", "1e-9")
    assert said.status == 0
    assert any("ended early (time limit)" in line for line in said.lines("Warning"))


def test_ctrl_c_ends_the_fit_where_it_is_and_still_answers(
    desk: Any, repository: Path, classify: Any
) -> None:
    unlabelled = classify("--time-limit", "1e-9")  # which rows there are to predict
    long = ("--chains", "100000", "--set", "short=50", "-o", "predicted.csv")
    command = ("classify", "train.csv", "--types", "types.yaml", "--target", "sick", *long)
    with OnTerminal(repository, *command) as fitting:
        fitting.wait_for(b"iteration")  # where the fit is, is shown on a terminal
        fitting.press_ctrl_c()
        assert fitting.end() == 130
        assert b"Warning: the fit ended early (interrupted)" in fitting.seen
    found = rows_of((desk.folder / "predicted.csv").read_text())
    assert [row["row"] for row in found] == [row["row"] for row in rows_of(unlabelled.stdout)]


def test_strict_wants_a_converged_fit(classify: Any) -> None:
    assert classify("--strict", "--set", "iterations=2").status == 3
    assert classify("--strict", "--set", "tolerance=0.01").status == 0


def test_every_key_is_explained(classify: Any, repository: Any) -> None:
    document = (repository / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    for options in (("--predict", "train.csv"), ("--cv", "2")):
        said = json.loads(classify(*options, "--json", "-o", "out.csv").stdout)
        keys = set(said) | set(said.get("fit", {})) | set(said.get("cross_validation", {}))
        keys |= set(said.get("scores", {}))
        assert [key for key in sorted(keys) if f"`{key}`" not in document] == []


def test_an_effort_says_how_many_starts_there_are(desk: Any) -> None:
    desk.put("train.csv", table(30, 1))
    desk.put("types.yaml", TYPES)
    source = read_table("train.csv")

    def starts(**said: Any) -> int:
        request = plan_request(source, "types.yaml", "sick", Sampling(**said), Saving(), None)
        return request.how.chains

    assert starts() == starts(effort="normal") == STARTS
    assert starts(effort="quick") < STARTS < starts(effort="thorough")
    assert starts(effort="quick", chains=7) == 7


def test_the_time_left_is_by_the_steps_of_earlier_folds() -> None:
    watch = FitProgress(Console(quiet=True), starts=2, folds=3)
    assert watch.seconds_left(1.0) is None
    for sweep in range(1, 11):
        watch.swept(0, sweep, {"bound": 0.0})
    assert watch.seconds_left(5.0) == pytest.approx(5.0 * (3 * 2 * STEPS - 10) / 10)
    for sweep in range(1, 5):
        watch.swept(0, sweep, {"bound": 0.0})
    assert watch.seconds_left(7.0) == pytest.approx(7.0 * (10 - 4 + 10) / 14)


@pytest.mark.parametrize("command", ["classify", "evaluate", "explore", "suggest"])
def test_codes_guessed_to_stand_for_missing_are_told(desk: Any, here: Any, command: str) -> None:
    rows = [f"{999 if i % 9 == 0 else 40 + i % 17},{'yes' if i % 2 else 'no'}" for i in range(120)]
    desk.put("t.csv", "b,y\n" + "\n".join(rows) + "\n,\n")
    more: tuple[str, ...] = {"classify": ("--target", "y"), "suggest": ()}.get(
        command, ("--warmup", "2")
    )
    more += ("--methods", "mean", "--rates", "0.1") * (command == "evaluate")
    said = here(command, "t.csv", "--types", "auto", "--chains", "1", *more)
    assert said.status == 0, said.stderr
    assert "column 'b': 14 cells are 999, guessed to stand for missing" in said.stderr


def test_folds_may_be_counted_by_numpy(desk: Any) -> None:
    desk.put("train.csv", table(40, 1))
    desk.put("types.yaml", TYPES)
    found = classify_table("train.csv", "types.yaml", target="sick", cv=np.int64(2), chains=1)
    assert found.cross_validation is not None
    assert found.cross_validation.folds == 2
    with pytest.raises(UsageError, match="no such column"):
        classify_table("train.csv", "types.yaml", target=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "more", [("--save", "fit.glfm"), ("--cv", "2"), ("--predict", "train.csv", "-o", "p.csv")]
)
def test_names_of_predictions_that_clash_are_refused_before_the_fit(
    desk: Any, here: Any, more: tuple[str, ...]
) -> None:
    desk.put("train.csv", table(40, 1).replace("id,", "row,", 1))
    desk.put("types.yaml", TYPES.replace("id: id", "row: id"))
    said = here("classify", "train.csv", "--types", "types.yaml", "--target", "sick", *more)
    assert said.status == 2
    assert "column 'row': the table of predictions would have two columns" in said.stderr
    assert not Path("fit.glfm").exists()


def test_a_fit_that_time_cut_short_is_told_as_json(classify: Any) -> None:
    said = classify("--json", "-o", "p.csv", "--time-limit", "0.001", "--chains", "6")
    assert said.status == 0, said.stderr
    starts = json.loads(said.stdout)["fit"]["starts"]
    assert starts[-1] is None


def test_features_that_are_all_intervals_are_cross_validated(desk: Any) -> None:
    rng = np.random.default_rng(2)
    tens = rng.integers(0, 5, 60)
    lines = [f"{10 * k}-{10 * k + 9},{'yes' if k > 2 else 'no'}" for k in tens]
    desk.put("train.csv", "band,sick\n" + "\n".join(lines) + "\n")
    desk.put("types.yaml", "columns: {band: count, sick: categorical}\n")
    found = classify_table("train.csv", "types.yaml", target="sick", cv=3, chains=1)
    assert found.cross_validation is not None
    assert min(one["accuracy"] for one in found.cross_validation.scores.values()) > 0.9


def test_folds_in_which_no_feature_is_seen_get_the_shares_of_labels(desk: Any) -> None:
    desk.put("train.csv", "x,sick\n,no\n0.433,no\n,yes\n,yes\n,no\n")
    desk.put("types.yaml", "columns: {x: positive, sick: categorical}\n")
    found = classify_table("train.csv", "types.yaml", target="sick", cv=2, chains=1)
    assert found.cross_validation is not None
    assert all(np.isfinite(one["log_score"]) for one in found.cross_validation.scores.values())
