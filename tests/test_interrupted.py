"""Ctrl-C after the chains are done, while observed cells are forecast: the draws are used."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from glfm_cli import impute
from glfm_cli.completion.verdict import unless_interrupted
from glfm_cli.inference.run import Stop

FEW = {"chains": 2, "warmup": 5, "draws": 40, "thin": 1, "threads": 1}  # enough to be recalibrated


def functions(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back


def press_ctrl_c_in(function: str) -> None:
    """Interrupt the main thread once it is inside of a function."""
    main = threading.main_thread().ident
    while function not in functions(sys._current_frames().get(main or 0)):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("options", [{}, {"model": "glfm"}, {"precision": 0.3}], ids=repr)
def test_draws_are_used_without_correction(sample_data: Path, options: dict[str, Any]) -> None:
    data = sample_data / "airquality.csv", sample_data / "airquality.types.yaml"
    threading.Thread(target=press_ctrl_c_in, args=("recalibrate",), daemon=True).start()
    done = impute(*data, **FEW, **options)
    assert done.run.stopped == "interrupted"
    assert done.n_completed == 44
    assert len(done.posterior.chains) == 2
    assert done.posterior.recalibration is None
    (said,) = [text for text in done.warnings if "no interval is recalibrated" in text]
    assert said.endswith("models are not weighted") is ("model" not in options)
    assert all(np.isfinite(part.marginal.sd).all() for part in done.columns)


def test_a_run_of_too_few_draws_for_a_correction_says_nothing_of_it(sample_data: Path) -> None:
    data = sample_data / "airquality.csv", sample_data / "airquality.types.yaml"
    done = impute(*data, model="glfm", chains=1, warmup=2, draws=2, threads=1)
    assert not any("recalibrated" in text for text in done.warnings)


def test_the_second_ctrl_c_of_a_run_is_raised() -> None:
    def interrupted(posterior: Any) -> Any:
        raise KeyboardInterrupt

    stop = Stop()
    draws: Any = object()
    assert unless_interrupted(interrupted, stop)(draws) is draws
    assert stop.reason == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        unless_interrupted(interrupted, stop)(draws)
