"""`--model cnpf` killed, interrupted or limited in time: what follows is as if nothing had been."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import numpy as np
import pytest
from killing import Command

from glfm_cli import load_fit
from tests.cli.conftest import run_here
from tests.cnpf.cnpf_fits import planted

TYPES = "columns:\n  u: row\n  i: column\n  n: {type: count, role: value, absent: zero}\n"
SMALL = ("--set", "components=6", "--set", "dimensions=2", "--chains", "2")


@pytest.fixture
def given(tmp_path: Path) -> tuple[str, ...]:
    """`glfm impute` on counts with a few missing pairs."""
    rng = np.random.default_rng(5)
    y, _, _ = planted(rng, 120, 30, 4, 60.0)
    cells = [f"r{u},c{i},{y[u, i]}" for u, i in zip(*np.nonzero(y), strict=True)]
    cells[:40] = [cell.rpartition(",")[0] + "," for cell in cells[:40]]
    (tmp_path / "n.csv").write_text("\n".join(["u,i,n", *cells]) + "\n")
    (tmp_path / "n.yaml").write_text(TYPES)
    return "impute", str(tmp_path / "n.csv"), "--types", str(tmp_path / "n.yaml"), *SMALL


@pytest.mark.parametrize("minibatch", ["auto", "30"])
def test_a_run_killed_twice_gives_the_same_bytes(
    given: tuple[str, ...], tmp_path: Path, seed: int, minibatch: str
) -> None:
    given = (*given, "--set", f"minibatch={minibatch}")
    begin = (*given, "-o", "out.csv", "--save", "fit.glfm", "--checkpoint", "0")
    again = (*given[:2], "-o", "out.csv", "--resume", "fit.glfm", "--checkpoint", "0")
    straight = tmp_path / "straight"
    straight.mkdir()
    assert Command(straight, *begin).end() == 0
    folder, moments = tmp_path / "fit.glfm", random.Random(seed)
    for _ in range(2):
        state = folder / "chain-0.state.arrow"
        before = state.stat().st_mtime_ns if state.exists() else 0
        command = Command(tmp_path, *(again if folder.exists() else begin))
        command.wait_until(lambda s=state, b=before: s.exists() and s.stat().st_mtime_ns > b)
        assert command.stop(moments.uniform(0.0, 0.05)) in (0, -signal.SIGKILL), command.stderr
    assert Command(tmp_path, *again).end() == 0
    assert (tmp_path / "out.csv").read_bytes() == (straight / "out.csv").read_bytes()


def test_a_time_limit_and_ctrl_c_end_with_an_answer_that_goes_on(
    given: tuple[str, ...], tmp_path: Path
) -> None:
    endless = (*given, "--set", "tolerance=0", "--set", "passes=1000000")
    folder = tmp_path / "fit.glfm"
    said = run_here(*endless, "--save", folder, "--time-limit", "0.01", "-o", tmp_path / "a.csv")
    assert said.status == 0, said.stderr
    assert "ended early (time limit)" in said.stderr
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 41
    state = folder / "chain-0.state.arrow"
    saved = {state.stat().st_mtime_ns}
    again = ("impute", given[1], "--resume", str(folder), "-o", "b.csv", "--checkpoint", "0")
    command = Command(tmp_path, *again, "--threads", "2")
    # Saved once while it is opened; from the second time on it is under way.
    command.wait_until(lambda: saved.add(state.stat().st_mtime_ns) or len(saved) > 3)
    assert command.stop(0.1, signal.SIGINT) == 130, command.stderr
    assert (tmp_path / "b.csv").exists(), command.stderr
    assert len((tmp_path / "b.csv").read_text().splitlines()) == 41
    assert max(extent.sweeps for extent in load_fit(folder).extents) > 1
