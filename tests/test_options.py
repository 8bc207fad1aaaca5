"""Options of the library: groups of fields, each checked once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import GlfmError, MatrixOptions, Sampling, evaluate, impute, load_fit
from glfm_cli.acquisition.suggest import Choice
from glfm_cli.completion import Files
from glfm_cli.evaluation import Design
from glfm_cli.options import Scaling


def table_of(n: int = 30) -> pa.Table:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(n)
    return pa.table({"x": pa.array(x, mask=x > 1), "y": x + rng.standard_normal(n)})


def test_numbers_of_numpy_are_those_of_python(tmp_path: Path) -> None:
    """Seeds come from arrays; what is saved and told of a run is JSON."""
    given: dict[str, Any] = {"seed": np.int64(3), "chains": np.int32(2), "draws": np.uint8(2)}
    given |= {"warmup": np.int64(2), "threads": np.int64(1), "time_limit": np.float32(60)}
    files = Files(tmp_path / "t.csv", record=tmp_path / "r.json")
    done = impute(
        table_of(), "auto", files=files, save=tmp_path / "a.glfm", interval=np.float32(0.5), **given
    )
    assert json.loads(json.dumps(done.to_dict()))["seed"] == 3
    assert json.loads((tmp_path / "r.json").read_text())["plan"]["chains"] == 2
    assert load_fit(tmp_path / "a.glfm").plan.seed == 3
    found = evaluate(table_of(), "auto", methods=["mean"], rates=np.array([0.1, 0.2]), repeats=1)
    assert json.loads(json.dumps(found.to_dict()))["rates"] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("group", "options", "message"),
    [
        (Sampling, {"chains": "4"}, "chains, found 4, expected a whole number from 1"),
        (MatrixOptions, {"recommend": "3"}, "recommend, found 3, expected a whole number from 1"),
        (MatrixOptions, {"missingness_features": 0}, "missingness_features, found 0, expected"),
        (Scaling, {"learn_rows": 0}, "learn_rows, found 0, expected a whole number from 1"),
        (Design, {"rates": ["0.1"]}, "rates, found 0.1, expected shares between 0 and 1"),
        (Design, {"rates": [1.5]}, "rates, found 1.5, expected shares between 0 and 1"),
        (Choice, {"count": "3"}, "count, found 3, expected a whole number from 1"),
        (Design, {"jobs": 0.5}, "jobs, found 0.5, expected a whole number from 1"),
    ],
)
def test_wrong_options_are_one_clear_line(group: Any, options: Any, message: str) -> None:
    with pytest.raises(GlfmError) as caught:
        group(**options)
    assert message in str(caught.value)
