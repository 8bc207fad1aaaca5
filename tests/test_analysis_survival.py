"""Survival times as the response of an analysis: their law, coefficients, and what is drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from statsmodels.duration.hazard_regression import PHReg

from glfm_cli import impute
from glfm_cli.completion import prepare
from glfm_cli.completion.analysis import walk as walk_module
from glfm_cli.completion.analysis.checks import related
from glfm_cli.completion.analysis.families import WIDE, Seen, wide
from glfm_cli.completion.analysis.reading import read_regression
from glfm_cli.completion.analysis.survival import ProportionalHazards, SurvivalDraw
from glfm_cli.completion.analysis.versions import Compatible
from glfm_cli.completion.analysis.walk import Walk
from glfm_cli.streams import Streams
from tests.cli.conftest import check_analysis_refused, run_here

PLAIN = {"max_features": 0, "initial_features": 0, "components": 0, "rank_kurtosis": 0.0}
SHORT: dict[str, Any] = {"chains": 2, "warmup": 5, "draws": 2, "threads": 1, "model": "glfm"}
TYPES: dict[str, Any] = {
    "time": "positive", "x": "real", "arm": {"type": "categorical", "levels": ["a", "b"]},
    "status": {"type": "categorical", "levels": ["0", "1", "2"]},
}  # fmt: skip


def trial(n: int, seed: int) -> dict[str, Any]:
    """Return a covariate, arms and times whose hazard goes with both and their product."""
    rng = np.random.default_rng(seed)
    x, arm = rng.standard_normal(n), rng.integers(0, 2, n)
    t = rng.exponential(np.exp(-0.5 * x + 0.5 * arm - x * arm))
    end = rng.uniform(0.5, 3.0, n)
    return {"x": x, "arm": arm, "time": np.minimum(t, end), "event": t <= end}


def cox(one: dict[str, Any]) -> np.ndarray:
    X = np.column_stack([one["x"], one["arm"], one["x"] * one["arm"]])
    return np.asarray(PHReg(one["time"], X, status=one["event"]).fit().params)


def test_densities_are_those_of_pieces_with_a_constant_hazard() -> None:
    law = ProportionalHazards((1.0, 2.5))
    at = SurvivalDraw(np.array([0.0, 0.5]), 1.0, np.array([0.2, 0.4, 0.8]), np.array([0.0, 1.0]))
    X = np.array([[1.0, 3.0]] * 4)  # e times the hazard of x = 1
    y = np.array([0.5, 2.0, -2.0, 4.0])
    until = np.array([0.5 * 0.2, 0.2 + 0.4, 0.2 + 0.4, 0.2 + 0.6 + 1.5 * 0.8]) * np.e
    event = np.log(np.e * np.array([0.2, 0.4, 1.0 / np.e, 0.8]))
    assert law.log_density(y, X, at) == pytest.approx(event - until)


def test_pieces_hold_as_many_events_each() -> None:
    y = np.append(np.arange(1.0, 41.0), -np.arange(1.0, 90.0))
    law = ProportionalHazards.of(y)
    assert np.bincount(law.piece(y[:40])).tolist() == [5] * 8
    assert len(ProportionalHazards.of(np.arange(1.0, 900.0)).cuts) == 19
    assert ProportionalHazards.of(y[36:]).cuts == ()


def test_coefficients_and_hazards_have_their_posterior() -> None:
    """Against a grid of b with hazards integrated out: p(b) prod_k E_k(b)^-d_k exp(sum d x b)."""
    y = np.array([0.4, -0.9, 1.2, 0.7, -2.2, 1.9, 0.2, -0.3, 2.6, 1.4])
    x = np.array([9.1, 8.7, 9.9, 11.0, 8.1, 9.0, 10.8, 9.6, 8.4, 10.1])
    law, X = ProportionalHazards((1.0,)), np.column_stack([np.ones(10), x])
    seen = Seen(y, X, wide(X))
    grid = np.linspace(-4.0, 5.0, 2001)
    spent = np.column_stack([np.minimum(abs(y), 1.0), np.maximum(abs(y) - 1.0, 0.0)])
    exposed = np.exp(np.outer(grid, x - x.mean())) @ spent
    events = np.array([3, 4])
    log_p = grid * np.sum((x - x.mean())[y > 0]) - np.log(exposed) @ events
    log_p = log_p - 0.5 * grid**2 * x.var() / WIDE**2
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ grid
    rng, at, drawn, hazards = np.random.default_rng(0), None, [], []
    for _ in range(6000):
        at = law.draw(seen, at, rng)
        drawn.append(at.b)
        hazards.append(at.hazards)
        assert at.centre.tolist() == [0.0, x.mean()]
    b = np.array(drawn)
    assert (b[:, 0] == 0.0).all()
    sd = np.sqrt(p @ (grid - mean) ** 2)
    assert abs(b[:, 1].mean() - mean) < 0.06 * sd
    assert b[:, 1].std() == pytest.approx(sd, rel=0.05)
    assert np.mean(hazards, axis=0) == pytest.approx(p @ (events / exposed), rel=0.06)
    spread = np.sqrt(p @ (events * (events + 1) / exposed**2) - (p @ (events / exposed)) ** 2)
    assert np.std(hazards, axis=0) == pytest.approx(spread, rel=0.1)
    together = (p * (grid - mean)) @ (events / exposed) / sd / spread
    assert np.abs(together).max() > 0.4
    found = [np.corrcoef(b[:, 1], one)[0, 1] for one in np.transpose(hazards)]
    assert found == pytest.approx(together, abs=0.06)


def test_many_pieces_fit_as_cox_does_wherever_x_lies() -> None:
    one = trial(400, 0)
    y = np.where(one["event"], one["time"], -one["time"])
    X = np.column_stack([np.ones(400), one["x"] + 2000.0, one["arm"], one["x"] * one["arm"]])
    fit = ProportionalHazards.of(y).fit(Seen(y, X, wide(X)))
    assert fit.b[1:] == pytest.approx(cox(one), abs=0.04)


def test_an_event_at_the_end_of_a_piece_is_one_of_those_who_were_there() -> None:
    """Times in whole years, each the end of a piece: Cox's law as Breslow has it for ties."""
    one = trial(400, 1)
    years = np.minimum(np.ceil(2.0 * one["time"]), 4.0)
    X = np.column_stack([np.ones(400), one["x"]])
    fit = ProportionalHazards.of(np.where(one["event"], years, -years)).fit(
        Seen(np.where(one["event"], years, -years), X, wide(X))
    )
    expected = PHReg(years, X[:, 1:], status=one["event"], ties="breslow").fit().params
    assert fit.b[1:] == pytest.approx(expected, rel=1e-3)


class Known(ProportionalHazards):
    """A law whose coefficients and hazard are known."""

    def draw(self, *_: Any) -> SurvivalDraw:
        return SurvivalDraw(np.array([0.0, 1.5]), 1.0, np.array([0.7]), np.zeros(2))


def test_missing_covariates_have_their_law_given_time_and_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Times that are known to the end and times cut short, each against a grid."""
    monkeypatch.setattr(walk_module, "TRIES", 60)
    row = np.arange(2000)
    x = np.where(row < 1000, np.random.default_rng(0).standard_normal(2000), np.nan)
    table = pa.table({
        "x": pa.array(x, from_pandas=True),
        "time": np.full(2000, 1.5),
        "event": np.where(row < 1500, "no", "yes"),
    })  # fmt: skip
    types = {"x": "real", "time": "positive"}
    types["event"] = {"type": "categorical", "levels": ["no", "yes"]}
    problem, data, _ = prepare(table, {"columns": types}, settings=PLAIN)
    of = Compatible.of(
        "Surv(time, event) ~ x", data, problem, (problem.config, problem.link_config), 3
    )
    law = replace(of.regression, family=Known(()))
    xs = {name: np.nan_to_num(one.x) for name, one in of.regression.columns.items()}
    walk = Walk([law], of.problem, ["x"], xs, Streams(1, 0))
    walk.sweep(adapt=False)
    eta = walk.chain.eta[0, 0]
    m, above = walk.chain.problem.links[0].margin.to_value(np.array([eta, eta + 1.0]))
    variance = walk.chain.state.noise[0] * (above - m) ** 2
    grid = np.linspace(-5.0, 5.0, 2001)
    for event, which in ((0.0, slice(1000, 1500)), (1.0, slice(1500, 2000))):
        log_p = -0.5 * (grid - m) ** 2 / variance
        log_p += event * 1.5 * grid - 0.7 * 1.5 * np.exp(1.5 * grid)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        mean = p @ grid
        sd = np.sqrt(p @ (grid - mean) ** 2)
        drawn = walk.xs["x"][which]
        assert abs(drawn.mean() - mean) < 4 * sd / np.sqrt(500)
        assert drawn.std() == pytest.approx(sd, rel=0.12)


def test_a_product_of_covariates_is_not_drawn_towards_zero() -> None:
    one = trial(300, 50)
    gone = np.random.default_rng(6).random(300) < np.where(one["event"], 0.5, 0.2)
    table = pa.table({
        "x": pa.array(np.where(gone, np.nan, one["x"]), from_pandas=True),
        "arm": np.where(one["arm"], "b", "a"),
        "time": one["time"],
        "status": np.where(one["event"], 2, np.arange(300) % 2),
    })  # fmt: skip
    done = impute(table, {"columns": TYPES}, settings=PLAIN, **SHORT)
    multiple = done.multiple(4, "Surv(time, status == 2) ~ x * arm")
    fits = [cox(one | {"x": each["x"].to_numpy()}) for each in multiple.tables()]
    assert np.mean(fits, axis=0) == pytest.approx(cox(one), abs=0.15)
    assert multiple.warnings == ()
    events = f"{one['event'].sum()} events (status == 2)"
    said = f"with proportional hazards, {events}; coefficients had settled"
    assert said in multiple.compatible.summary()


def test_columns_beside_that_tell_of_survival_are_found_and_others_are_not() -> None:
    one = trial(400, 8)
    rng = np.random.default_rng(1)
    table = pa.table({
        "x": pa.array(np.where(np.arange(400) < 40, np.nan, one["x"]), from_pandas=True),
        "arm": np.where(one["arm"], "b", "a"), "time": one["time"],
        "status": np.where(one["event"], "1", "0"),
        "after": np.where(one["event"], 1.0, 0.0) - one["time"] + rng.standard_normal(400),
        "chance": rng.standard_normal(400),
    })  # fmt: skip
    types = {**TYPES, "status": "categorical", "after": "real", "chance": "real"}
    problem, data, _ = prepare(table, {"columns": types}, settings=PLAIN)
    of = Compatible.of(
        "Surv(time, status) ~ x * arm", data, problem, (problem.config, problem.link_config), 3
    )
    assert related(of.regression, data) == ("after",)
    assert of.auxiliaries[0].names == ("x", "arm", "time", "status", "chance")
    assert len(of.problem.xs) == 3  # without time, status and the auxiliary


@pytest.mark.parametrize(
    ("left", "codes", "expected"),
    [
        ("Surv(time, status)", ["1", "2", "2"], [-1.0, 2.0, 3.0]),
        ("Surv(time, status)", ["0", "1", "1"], [-1.0, 2.0, 3.0]),
        ("Surv(time, status == 1)", ["0", "1", "2"], [-1.0, 2.0, -3.0]),
        ('Surv(time, status != "alive")', ["alive", "dead", "gone"], [-1.0, 2.0, 3.0]),
    ],
)
def test_events_are_second_levels_or_conditions(
    left: str, codes: list[str], expected: list[float]
) -> None:
    table = pa.table({"time": [1.0, 2.0, 3.0] * 3, "status": codes * 3, "x": np.arange(9.0)})
    types = {"time": "positive", "status": "categorical", "x": "real"}
    _, data, _ = prepare(table, {"columns": types})
    regression = read_regression(f"{left} ~ x", data.columns)
    assert regression.columns[regression.target].x.tolist() == expected * 3
    assert regression.responses == ("time", "status")


@pytest.mark.parametrize(
    ("event", "said"),
    [("outcome", "10 events (outcome == No event)"), ("dead", "20 events (dead == 1)"),
     ('outcome == "Death"', '20 events (outcome == "Death")')],
)  # fmt: skip
def test_the_run_says_what_was_taken_for_the_event(tmp_path: Any, event: str, said: str) -> None:
    """Of words the second in order, which may be the wrong one."""
    rows = ["Death,1", "Death,1", "No event,0"]
    cells = [f"{i + 1},{rows[i % 3]},{i % 7 if i % 5 else ''}" for i in range(30)]
    (tmp_path / "t.csv").write_text("time,outcome,dead,x\n" + "\n".join(cells))
    (tmp_path / "t.yaml").write_text(
        "columns: {time: positive, outcome: categorical, dead: categorical, x: real}"
    )
    files = "impute", tmp_path / "t.csv", "--types", tmp_path / "t.yaml", "-o", tmp_path / "o.csv"
    length = "--chains", "1", "--warmup", "2", "--draws", "2", "--multiple", "1"
    done = run_here(*files, *length, "--analysis", f"Surv(time, {event}) ~ x")
    assert f"with proportional hazards, {said}; it takes several tables" in done.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Surv(time) ~ x", "'Surv(time)' has 1 part, expected a time and an event"),
        ("Surv(time, status) ~ x", "'status' is neither 0 or 1 nor true or false"),
        ("Surv(x, status == 2) ~ time", "'x' is not a column of numbers from 0"),
        ('Surv(time, many != "P") ~ x', "'P' is not a level of 'many', expected 'p', 'q'"),
        ('Surv(time, status == 2) ~ I(many == "P") + x', "'P' is not a level of 'many'"),
        ("Surv(time, status == 2) ~ x + status", "'status' is on both sides of ~"),
        ("Surv(time, late == 1) ~ x", "1 cell of 'late' are missing (times and events are never"),
        ("Surv(time, status == 2) ~ x + late * many",
         "has 5 coefficients, and its event happened in 4 rows"),
    ],
)  # fmt: skip
def test_what_is_no_survival_is_refused_with_the_mend(
    tmp_path: Any, text: str, expected: str
) -> None:
    rows = "1,0,0.5,1,p\n2,1,-1,0,q\n3,2,0.3,1,q\n4,2,,0,p\n"
    types = (
        'columns: {time: positive, status: {type: categorical, levels: ["0", "1", "2"]}, x: real,'
        ' late: {type: categorical, levels: ["0", "1"]}, many: categorical}'
    )
    table = f"time,status,x,late,many\n{rows}{rows}5,0,1,,p\n"
    check_analysis_refused(tmp_path, table, types, text, expected)
