"""Completion by shells: what Tab offers after the start of a command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from glfm_cli.cli.options import NAMES
from glfm_cli.latent import MODELS


@pytest.mark.parametrize(
    ("begun", "offered"),
    [
        ("glfm cl", ["classify"]),
        ("glfm impute x.csv --sa", ["--save"]),
        ("glfm impute x.csv --effort t", ["thorough"]),
        ("glfm evaluate x.csv --mechanism mn", ["mnar"]),
        ("glfm impute x.csv --model c", ["clgp", "cnpf"]),
    ],
)
def test_words_that_may_come_next_are_offered(
    glfm: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, begun: str, offered: list[str]
) -> None:
    monkeypatch.setenv("COMP_WORDS", begun)
    monkeypatch.setenv("COMP_CWORD", str(len(begun.split()) - 1))
    monkeypatch.setenv("_GLFM_COMPLETE", "complete_bash")
    assert glfm().stdout.split() == offered


def test_a_shell_is_told_how_to_complete(glfm: Callable[..., Any]) -> None:
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = glfm("--show-completion", "bash", env=named)
    assert done.returncode == 0, done.stderr
    assert "_GLFM_COMPLETE=complete_bash" in done.stdout


def test_the_models_offered_are_those_there_are() -> None:
    assert sorted(NAMES) == sorted(MODELS)
