"""CONTRIBUTING's lists of how to add a part name what there is, and the toys follow them."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import glfm_cli
from glfm_cli.io.formats import suffixes
from glfm_cli.latent.model import GaussianModel, LatentModel, ValueModel
from glfm_cli.links import LINKS, Link
from tests.contract import test_commands, test_links, test_models, test_priors
from tests.contract.toys import COMMAND_LINES, EXPORT_LINES, FORMAT_LINES, MODEL_LINES, TYPE_LINES

PARTS = ("A model", "A link", "A command", "A file format")


def steps(repository: Path, part: str) -> str:
    """Return the numbered steps, and what is said below them."""
    text = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    text = text.partition("## How to add")[2].partition("\n## ")[0]
    return text.partition(f"**{part}**")[2].partition("\n**")[0]


@pytest.mark.parametrize("part", PARTS)
def test_a_list_is_short_and_its_files_are_there(repository: Path, part: str) -> None:
    text = steps(repository, part)
    assert 3 <= len(re.findall(r"^\d\. ", text, flags=re.MULTILINE)) <= 6
    paths = re.findall(r"`((?:glfm_cli|tests|docs|cli|io|links|latent|schema)/[\w/.]*)`", text)
    assert paths
    roots = repository, repository / "glfm_cli"
    gone = [one for one in paths if not any((root / one).exists() for root in roots)]
    assert [one for one in gone if one != "docs/models/NAME.md"] == []


@pytest.mark.parametrize("part", PARTS)
def test_a_table_of_parts_is_where_it_is_said_to_be(repository: Path, part: str) -> None:
    text = steps(repository, part)
    ((table, path),) = re.findall(r"Its line in `([A-Z_]+)` \(`([\w/.]+)\.py`\)", text)
    module = import_module("glfm_cli." + path.replace("/", ".").removesuffix(".__init__"))
    assert len(getattr(module, table)) > 3


def methods_of(protocol: Any) -> set[str]:
    """Return the names that a protocol asks for."""
    every = {name for one in protocol.__mro__ for name in vars(one) if not name.startswith("_")}
    return every | set(getattr(protocol, "__annotations__", {}))


@pytest.mark.parametrize("name", MODEL_LINES)
def test_a_toy_model_follows_the_list(name: str) -> None:
    model: LatentModel = MODEL_LINES[name]
    protocol = GaussianModel if model.sees == "gaussian" else ValueModel
    assert methods_of(protocol) - set(dir(model)) == set()
    assert model.Config() == model.Config()  # every field has a default
    cases = {case.model for case in test_priors.CASES.values()} | set(test_priors.TOYS)
    assert name in cases
    assert name in {case[0] for case in test_models.CASES.values()}
    assert name in (*test_commands.DENSE, *test_commands.SPARSE)


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("name", TYPE_LINES)
def test_a_toy_type_follows_the_list(name: str) -> None:
    assert methods_of(Link) - set(dir(LINKS[name])) - {"name"} == set()
    assert name in {case.type for case in test_links.CASES.values()}
    assert name in test_commands.EVERY_TYPE


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_toy_command_follows_the_list(name: str) -> None:
    module, function = COMMAND_LINES[name], getattr(glfm_cli, name)
    assert function.__module__ == EXPORT_LINES[name]
    result = getattr(module, function.__annotations__["return"])
    assert result.__dataclass_params__.frozen
    assert module.run.__doc__
    assert module.EXAMPLE.startswith(f"glfm {name} sample_data/")
    assert EXPORT_LINES.keys() == COMMAND_LINES.keys()


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("name", FORMAT_LINES)
def test_a_toy_format_follows_the_list(name: str) -> None:
    own = FORMAT_LINES[name]
    assert {"read", "write"} <= set(dir(own.load()))
    assert own.magic
    assert {suffix for suffix, kind in suffixes().items() if kind == name} == set(own.suffixes)
