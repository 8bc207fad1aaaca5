"""docs/evaluate.md is complete: every option, method, mechanism, score, column and key is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from glfm_cli import Evaluation, evaluate
from glfm_cli.evaluation.masks import MECHANISMS
from glfm_cli.evaluation.methods import known_methods
from glfm_cli.evaluation.results import RESULTS


@pytest.fixture(scope="module")
def document(repository: Path) -> str:
    return (repository / "docs" / "evaluate.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def done(sample_data: Path) -> Evaluation:
    return evaluate(
        sample_data / "messy.csv", sample_data / "messy.types.yaml", methods=["glfm", "mean"],
        rates=[0.3], repeats=2, jobs=1, chains=1, warmup=2, draws=2,
    )  # fmt: skip


def section(document: str, heading: str) -> str:
    inside = document.partition(f"\n## {heading}\n")[2]
    assert inside
    return inside.partition("\n## ")[0]


def test_every_option_is_explained(document: str, glfm: Callable[..., Any]) -> None:
    shown = glfm("evaluate", "--help").stdout
    options = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", shown))
    assert {"--output", "-o", "--method", "--masked"} <= options
    assert [option for option in sorted(options) if f"`{option}" not in document] == []


def test_every_method_mechanism_and_score_is_explained(document: str, done: Evaluation) -> None:
    scores = {row["score"] for row in done.to_table().to_pylist()}
    bins = {name for name in scores if re.match(r"forecast_|frequency_", name)}
    assert {"crps", "nrps", "brier", "width_95", "seconds"} <= scores
    names = {*known_methods(), *MECHANISMS, *(scores - bins)}
    assert [name for name in sorted(names) if f"`{name}`" not in document] == []


def test_every_column_of_the_results_is_explained(document: str) -> None:
    inside = section(document, "The table of results")
    assert [name for name in RESULTS.names if f"`{name}`" not in inside] == []


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_every_key_of_the_json_object_is_explained(document: str, done: Evaluation) -> None:
    said = done.to_dict()
    said["failures"] = [{"method": "a", "rate": 0.1, "repeat": 0, "reason": "why"}]
    inside = section(document, "JSON")
    assert [key for key in sorted(set(keys_of(said))) if f"`{key}`" not in inside] == []


def test_a_page_is_one_file(done: Evaluation, tmp_path: Path) -> None:
    from glfm_cli.report import write_evaluation

    write_evaluation(done, tmp_path / "page.html", name="messy")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<img ") == 1
    assert page.count('src="data:image/svg+xml;base64,') == 1
    assert "http://" not in page
    assert "https://" not in page
