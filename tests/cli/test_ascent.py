"""A model that sees values and climbs a bound, run by the same driver: saved, killed, resumed."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from killing import Command

from glfm_cli import latent, load_fit
from glfm_cli.completion import prepare
from glfm_cli.inference.sampling import Plan, Run, sample
from tests.contract.toys import MODEL_LINES

Here = Callable[..., Any]
MODELS = ("classes", "halved-classes")
TOYS = ("tests.contract.toys",)


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands of this process take the toys."""
    for name in MODELS:
        monkeypatch.setitem(latent.MODELS, name, MODEL_LINES[name])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, sample_data: Path) -> tuple[str, ...]:
    """`glfm impute` on the first rows of a table of all types."""
    folder = tmp_path_factory.mktemp("table")
    lines = (sample_data / "messy.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "table.csv").write_text("".join(lines[:60]), encoding="utf-8")
    types = sample_data / "messy.types.yaml"
    return ("impute", str(folder / "table.csv"), "--types", str(types), "--chains", "4")


def run_of(model: str, chains: int = 8, threads: int = 1) -> Run:
    rng = np.random.default_rng(0)
    around = rng.integers(0, 3, 90)
    columns = {name: 4.0 * around + rng.standard_normal(90) for name in "ab"}
    table = pa.table({name: np.where(rng.random(90) < 0.1, None, x) for name, x in columns.items()})
    types = {"columns": {"a": "real", "b": "real"}}
    options: dict[str, Any] = {"model": model, "chains": chains, "seed": 1, "settings": None}
    problem, _, _ = prepare(table, types, warmup=0, draws=1, thin=1000, **options)
    return sample(problem, Plan.of_ascent(chains, 1), threads=threads)


# The driver ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_bounds_rise_and_the_weights_add_up_to_one(model: str) -> None:
    run = run_of(model)
    for bounds in run.bounds:
        assert np.all(np.diff(bounds) >= -1e-9 * abs(bounds[-1]))
    posterior = run.posterior
    assert posterior.weights is not None
    assert sum(posterior.weights) == pytest.approx(1.0)
    best = [chain[0].trace["score"] for chain in posterior.chains]
    assert best == sorted(best, reverse=True)
    assert posterior.chains[0][0].trace["bound"] == max(bounds[-1] for bounds in run.bounds)


def test_the_better_half_goes_on_and_the_best_alone_to_the_end() -> None:
    run = run_of("halved-classes")
    steps = [len(bounds) for bounds in run.bounds]
    assert len(run.posterior.chains) == 4
    assert sorted(steps)[:4] == [5, 5, 5, 5]
    first = sorted((bounds[4] for bounds in run.bounds), reverse=True)
    gone_on = [bounds[4] for bounds in run.bounds if len(bounds) > 5]
    assert min(gone_on) >= first[3]


@pytest.mark.parametrize("model", MODELS)
def test_restarts_do_not_depend_on_threads(model: str) -> None:
    one, two = run_of(model), run_of(model, threads=3)
    assert one.bounds == two.bounds
    assert one.posterior.weights == two.posterior.weights


# The command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_saved_fit_gives_the_same_table(
    table: tuple[str, ...], tmp_path: Path, here: Here, model: str
) -> None:
    folder, out = tmp_path / "fit.glfm", tmp_path / "out.csv"
    found = here(*table, "--model", model, "-o", out, "--save", folder, "--strict")
    assert found.status == 0, found.stderr
    assert "Converged: the bound of the best of" in found.stderr
    fit = load_fit(folder)
    assert fit.posterior.weights is not None
    again = here("impute", table[1], "--fit", folder)
    assert again.output == out.read_bytes()
    diagnosed = here("diagnose", folder, "--json")
    assert diagnosed.status == 0, diagnosed.stderr
    assert json.loads(diagnosed.stdout)["diagnostics"]["converged"] is True
    several = here("impute", table[1], "--fit", folder, "--multiple", "3", "-o", tmp_path / "m.csv")
    assert several.status == 0, several.stderr


@pytest.mark.parametrize("model", MODELS)
def test_a_run_killed_five_times_gives_the_same_bytes(
    table: tuple[str, ...], tmp_path: Path, seed: int, model: str
) -> None:
    begin = (*table, "--model", model, "-o", "out.csv", "--save", "fit.glfm", "--checkpoint", "0")
    again = (*table[:2], "-o", "out.csv", "--resume", "fit.glfm", "--checkpoint", "0")
    straight = tmp_path / "straight"
    straight.mkdir()
    assert Command(straight, *begin, toys=TOYS).end() == 0
    expected = (straight / "out.csv").read_bytes()
    moments, killed, folder = random.Random(seed), 0, tmp_path / "fit.glfm"
    while killed < 5:
        command = Command(tmp_path, *(again if folder.exists() else begin), toys=TOYS)
        status = command.stop(moments.uniform(0.0, 0.1))
        killed += status == -signal.SIGKILL
        assert status in (0, -signal.SIGKILL), command.stderr
        if status == 0:
            assert (tmp_path / "out.csv").read_bytes() == expected
            shutil.rmtree(folder)
    assert Command(tmp_path, *(again if folder.exists() else begin), toys=TOYS).end() == 0
    assert (tmp_path / "out.csv").read_bytes() == expected


def test_a_time_limit_and_ctrl_c_end_with_an_answer_that_goes_on(
    table: tuple[str, ...], tmp_path: Path, here: Here
) -> None:
    endless = (*table, "--model", "classes", "--set", "rise=-1", "--set", "classes=40")
    folder = tmp_path / "fit.glfm"
    found = here(*endless, "--save", folder, "--time-limit", "0.01", "-o", tmp_path / "a.csv")
    assert found.status == 0
    assert "ended early (time limit)" in found.stderr
    assert load_fit(folder).posterior.weights is not None
    state = folder / "chain-0.state.arrow"
    seen: set[int] = set()  # the state is written once before the fit goes on
    again = ("impute", table[1], "--resume", str(folder), "-o", "b.csv", "--checkpoint", "0")
    command = Command(tmp_path, *again, toys=TOYS)
    command.wait_until(lambda: bool(seen.add(state.stat().st_mtime_ns)) or len(seen) > 3)
    assert command.stop(0.1, signal.SIGINT) == 130, command.stderr
    assert (tmp_path / "b.csv").exists()
    fit = load_fit(folder)
    assert max(extent.sweeps for extent in fit.extents) > 1


def test_options_of_sampling_are_refused(table: tuple[str, ...], here: Here) -> None:
    found = here(*table, "--model", "classes", "--warmup", "7")
    assert found.status == 2
    assert found.stderr.startswith("Error: --warmup, --draws and --thin say how long to sample")
