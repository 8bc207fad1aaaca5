"""A classify run that was killed, stopped or cut in two predicts as one uninterrupted run does."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killing import Command

Here = Callable[..., Any]
OF_KIND = {
    "table": ("--chains", "3"),
    "tasks": ("--chains", "2", "--set", "stack=false"),
    "pooled": ("--chains", "2", "--set", "short=2"),
    "gibbs": (
        "--chains",
        "2",
        "--set",
        "inference=gibbs",
        "--set",
        "sweeps=40",
        "--set",
        "draws=5",
    ),
}
TYPES = "glfm: 1\ncolumns: {site: %s, a: real, b: count, kind: categorical, sick: categorical}\n"


def begun(folder: Path, kind: str, **said: str) -> tuple[str, ...]:
    """Put a table and its types into a folder, and return the command that begins a run on it."""
    rng, rows = np.random.default_rng(1), []
    for i in range(48):
        a = rng.normal(2.0 * (i % 2), 1.0)
        label = "" if rng.random() < 0.3 else "ny"[int(a + rng.normal() > 1.0)]
        cells = (f"s{i % 3}", f"{a:.3f}", str(rng.poisson(3)), "uvw"[rng.integers(3)], label)
        rows.append(",".join("" if rng.random() < 0.1 and c[:1] != "s" else c for c in cells))
    (folder / "train.csv").write_text("site,a,b,kind,sick\n" + "\n".join(rows) + "\n")
    of_site = "{role: task}" if kind in ("tasks", "pooled") else "{role: ignore}"
    (folder / "types.yaml").write_text(TYPES % of_site)
    options = ("--types", "types.yaml", "--target", "sick", "-o", "out.csv", "--seed", "3")
    return ("classify", "train.csv", *options, *OF_KIND[kind], "--threads", "2")


def again(*more: str) -> tuple[str, ...]:
    return ("classify", "train.csv", "--resume", "fit.glfm", "-o", "out.csv", *more)


def expected(folder: Path, begin: tuple[str, ...]) -> bytes:
    assert Command(folder, *begin).end() == 0
    found = (folder / "out.csv").read_bytes()
    (folder / "out.csv").unlink()
    return found


def check_killed(folder: Path, kind: str, times: int, seed: int) -> None:
    """Kill a run so many times; what is left of it predicts as a run that nobody killed."""
    begin = begun(folder, kind)
    straight = expected(folder, begin)
    moments, killed, fit = random.Random(seed), 0, folder / "fit.glfm"
    keep = ("--save", "fit.glfm", "--checkpoint", "0")
    while killed < times:
        going_on = fit.exists()
        command = Command(folder, *(again("--checkpoint", "0") if going_on else (*begin, *keep)))
        status = command.stop(moments.uniform(0.0, 0.6))
        killed += status == -signal.SIGKILL
        assert status in (0, -signal.SIGKILL), command.stderr
        if status == 0:  # so fast that it was done before: once more from the beginning
            assert (folder / "out.csv").read_bytes() == straight
            shutil.rmtree(fit)
    assert Command(folder, *(again() if fit.exists() else (*begin, *keep))).end() == 0
    assert (folder / "out.csv").read_bytes() == straight


@pytest.mark.parametrize("kind", ["table", "tasks", "gibbs"])
def test_a_killed_run_is_resumed(kind: str, tmp_path: Path, seed: int) -> None:
    check_killed(tmp_path, kind, 2, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", OF_KIND)
def test_a_run_killed_ten_times_is_resumed(kind: str, tmp_path: Path, seed: int) -> None:
    check_killed(tmp_path, kind, 10, seed + 1)


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_with_predictions_and_the_run_goes_on(
    how: signal.Signals, status: int, tmp_path: Path
) -> None:
    begin = begun(tmp_path, "table")
    straight = expected(tmp_path, begin)
    fit = ("--save", "fit.glfm", "--checkpoint", "0")
    command = Command(tmp_path, *begin, *fit)
    command.wait_for(tmp_path / "fit.glfm" / "chain-0.state.arrow")
    assert command.stop(0.0, how) == status, command.stderr
    assert "continue with --resume fit.glfm" in command.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) > 1
    assert (
        Command(tmp_path, "classify", "train.csv", "--fit", "fit.glfm", "-o", "new.csv").end() == 0
    )
    assert Command(tmp_path, *again()).end() == 0
    assert (tmp_path / "out.csv").read_bytes() == straight


def test_a_time_limit_ends_with_predictions_and_the_run_goes_on(tmp_path: Path) -> None:
    begin = begun(tmp_path, "tasks")
    straight = expected(tmp_path, begin)
    command = Command(tmp_path, *begin, "--save", "fit.glfm", "--time-limit", "0.001")
    assert command.end() == 0
    assert "ended early (time limit)" in command.stderr
    assert Command(tmp_path, *again("--time-limit", "0.001")).end() == 0
    assert Command(tmp_path, *again()).end() == 0
    assert (tmp_path / "out.csv").read_bytes() == straight


def test_a_full_disk_leaves_no_half_made_folder(tmp_path: Path) -> None:
    begin = begun(tmp_path, "table")
    command = Command(tmp_path, *begin, "--save", "fit.glfm", largest=2000)
    assert command.end() == 1
    assert not (tmp_path / "fit.glfm").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".fit")]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (("--chains", "2"), "--chains and --resume cannot be used together"),
        (("--set", "short=3"), "--set and --resume cannot be used together"),
        (("--save", "b.glfm"), "--save and --resume cannot be used together"),
    ],
)
def test_what_shapes_a_run_has_no_place_beside_one(
    more: tuple[str, ...], error: str, desk: Any, here: Here
) -> None:
    assert here(*begun(desk.folder, "table"), "--save", "fit.glfm").status == 0
    desk.check_rejected(error, here, *again(*more))


def test_another_table_is_refused(desk: Any, here: Here) -> None:
    assert here(*begun(desk.folder, "table"), "--save", "fit.glfm").status == 0
    text = (desk.folder / "train.csv").read_text()
    desk.put("train.csv", text.replace("s1,", "s1,9", 1))
    desk.check_rejected("fit.glfm: was made with another table", here, *again())
