"""R-hat, effective sample sizes and standard errors beside those of arviz-stats, on real traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arviz_stats.base import array_stats

from glfm_cli import diagnose_fit, impute
from glfm_cli.inference.diagnostics import Flag, ess_bulk, ess_tail, mcse_mean, rhat
from tests.test_diagnostics import TRACES

Traces = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def saved(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Traces:
    """The traces of a fit that was saved and loaded again, but for those that never move."""
    folder = tmp_path_factory.mktemp("fit") / "fit.glfm"
    data = sample_data / "airquality.csv"
    plan = {"model": "glfm", "chains": 4, "warmup": 20, "draws": 45, "thin": 1}
    impute(data, data.with_suffix(".types.yaml"), save=folder, **plan)  # type: ignore[arg-type]
    result = diagnose_fit(folder)
    moving = [q.name for q in result.diagnostics if q.flag is not Flag.CONSTANT]
    return {name: result.traces[name] for name in moving}


def reference(trace: np.ndarray) -> list[float]:
    where = {"chain_axis": 0, "draw_axis": 1}
    return [
        float(array_stats.rhat(trace, method="rank", **where)),
        float(array_stats.ess(trace, method="bulk", **where)),
        float(array_stats.ess(trace, method="tail", prob=(0.05, 0.95), **where)),
        float(array_stats.mcse(trace, method="mean", **where)),
    ]


def ours(trace: np.ndarray) -> list[float]:
    return [rhat(trace), ess_bulk(trace), ess_tail(trace), mcse_mean(trace)]


def test_diagnostics_of_saved_traces_equal_those_of_arviz_stats(saved: Traces) -> None:
    assert len(saved) >= 20
    assert {"log_likelihood", "features", "alpha", "noise_0"} <= saved.keys()
    for name, trace in saved.items():
        assert trace.shape == (4, 45)
        np.testing.assert_allclose(ours(trace), reference(trace), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("name", TRACES)
def test_diagnostics_of_made_up_traces_equal_those_of_arviz_stats(name: str) -> None:
    trace = TRACES[name]()
    np.testing.assert_allclose(ours(trace), reference(trace), rtol=1e-6)
