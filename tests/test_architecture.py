"""Who may import whom: every import statement of the package is read and checked.

The rooms of the package stand in a row, and nothing imports to its right:

    errors, settings, options, streams, arrays, _kernels  <-  schema, guess, io  <-  encoding, links
        <-  latent  <-  inference, store  <-  the tasks  <-  estimators, plots, report  <-  cli

A room is a module of the package or a folder of the same name.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from glfm_cli import _EXPORTS

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "glfm_cli"
BUILD_HOOK = "_kernels._build"  # runs at build time only, so it imports the build's requirements

TASKS = (
    "completion",
    "diagnosis",
    "exploration",
    "evaluation",
    "classification",
    "acquisition",
)
LAYERS = (
    ("errors", "settings", "options", "streams", "arrays", "_kernels"),
    ("schema", "guess", "io"),
    ("encoding", "links"),
    ("latent",),
    ("inference", "store"),
    TASKS,
    ("estimators", "plots", "report"),
    ("cli", "__main__"),
)
LAYER_OF = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}

# Third parties with a fixed home; NumPy and SciPy are at home everywhere.
HOMES = {
    "typer": {"cli"},
    "rich": {"cli"},
    "yaml": {"schema"},
    "matplotlib": {"plots"},
    "threadpoolctl": {"inference"},
    "distributed": {"inference"},
    "pyarrow": {"io", "guess", "encoding", "store", "estimators", *TASKS},
    "xarray": {"completion"},
    "sklearn": {"classification", "evaluation", "estimators"},
}
DISTRIBUTION_OF = {"sklearn": "scikit-learn", "yaml": "PyYAML"}  # where names differ
# Extras whose packages a function may import when it is asked for what they are for.
OPTIONAL = ("arviz", "cluster", "sklearn")
KERNEL_CIMPORTS = ("cython", "libc", "cpython", "numpy", "scipy.linalg", "scipy.special")


class Import(NamedTuple):
    """One import statement: the module it stands in, and the module it names."""

    importer: str  # dotted, without the package's own name; "" for its __init__
    line: int
    target: str  # dotted and absolute

    @property
    def room(self) -> str:
        return self.importer.partition(".")[0]

    @property
    def target_room(self) -> str | None:
        """The room that is imported from, None for another package or for a plain name."""
        return room_of(self.target)

    @property
    def third_party(self) -> str | None:
        top = self.target.partition(".")[0]
        return None if top == "glfm_cli" or top in sys.stdlib_module_names else top

    def __str__(self) -> str:
        return f"{self.importer or '__init__'}:{self.line} imports {self.target}"


def room_of(target: str) -> str | None:
    """Return the room of a dotted name, seeing through the names that `glfm_cli` exports."""
    top, _, rest = target.partition(".")
    name = rest.partition(".")[0]
    if top != "glfm_cli" or not name:
        return None
    name = _EXPORTS.get(name, name).lstrip(".").partition(".")[0]
    return None if name.startswith("__") and name != "__main__" else name


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module_folder(path: Path) -> bool:
    return path.is_dir() and any(path.glob("*.py"))


def is_module(dotted: str) -> bool:
    base = REPOSITORY.joinpath(*dotted.split("."))
    return base.is_dir() or any(base.with_suffix(suffix).is_file() for suffix in (".py", ".pyx"))


def imports_of(source: str, importer: str, in_folder: bool) -> Iterator[Import]:
    """Yield the imports of one Python source: also lazy ones, those for types, `import_module`.

    `from a import b` counts as an import of `a.b` where that may be a module, which is for
    names of this package only.
    """
    package = ["glfm_cli", *filter(None, importer.split("."))]
    package = package if in_folder else package[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(importer, node.lineno, name.name)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *filter(None, [node.module])])
            for name in node.names:
                inner = f"{base}.{name.name}"
                ours = base == "glfm_cli" or (base.startswith("glfm_cli.") and is_module(inner))
                yield Import(importer, node.lineno, inner if ours else base)
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            for argument in node.args[:1] if called == "import_module" else []:
                if isinstance(argument, ast.Constant):
                    yield Import(importer, node.lineno, str(argument.value))


def circle_of(graph: dict[str, set[str]]) -> str:
    """Return the names along a circle of imports, "" when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        return " <- ".join(circle.args[1])
    return ""


@functools.cache
def all_imports() -> list[Import]:
    """Return the imports of the whole package but its own stub, which lists the public names."""
    found: list[Import] = []
    for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.glob("*/*.pyi")]):
        in_folder = path.stem == "__init__"
        found += imports_of(path.read_text(encoding="utf-8"), module_name(path), in_folder)
    return found


def at_run_time() -> list[Import]:
    """Return those of them that are made when the package is used."""
    return [one for one in all_imports() if one.importer != BUILD_HOOK]


def upward(imports: list[Import]) -> list[str]:
    """Return the imports that point to the right in the row of layers."""
    return [
        str(one)
        for one in imports
        if one.room and one.target_room and LAYER_OF[one.target_room] > LAYER_OF[one.room]
    ]


def away_from_home(imports: list[Import]) -> list[str]:
    """Return the imports of a third party outside its home."""
    return [
        str(one)
        for one in imports
        if one.third_party in HOMES and one.room not in HOMES[one.third_party]
    ]


def between_models(imports: list[Import], models: set[str]) -> list[str]:
    """Return the imports of one latent model by another."""
    found = []
    for one in imports:
        mine = one.importer.split(".")
        theirs = one.target.split(".")[1:]
        if mine[0] != "latent" or theirs[:1] != ["latent"]:
            continue
        ours = mine[1] if len(mine) > 1 else None
        other = theirs[1] if len(theirs) > 1 else None
        if ours in models and other in models and ours != other:
            found.append(str(one))
    return found


def cimports_of(source: str) -> set[str]:
    """Return the dotted names that a Cython source imports from, absolute or starting with '.'."""
    code = re.sub(r"#.*", "", source)
    found = set(re.findall(r"^\s*from\s+([\w.]+)\s+c?import\b", code, flags=re.MULTILINE))
    for names in re.findall(r"^\s*c?import\s+([\w., ]+)", code, flags=re.MULTILINE):
        found |= {name.split()[0] for name in names.split(",") if name.strip()}
    return found


def foreign_to_kernels(source: str) -> list[str]:
    """Return what a Cython source imports from outside the kernels and their few providers."""
    allowed = (*KERNEL_CIMPORTS, "glfm_cli._kernels", "__future__")
    return sorted(
        name
        for name in cimports_of(source)
        if not re.match(r"\.(?!\.)", name)
        and not any(name == one or name.startswith(f"{one}.") for one in allowed)
    )


# The rules -----------------------------------------------------------------------------------


def test_every_room_has_a_place_in_the_row() -> None:
    rooms = {one.importer.partition(".")[0] for one in all_imports()} | {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or is_module_folder(path)
    }
    assert rooms - {"", "__init__"} <= set(LAYER_OF)


def test_no_room_is_both_a_file_and_a_folder() -> None:
    twice = [name for name in LAYER_OF if is_module_folder(PACKAGE / name)]
    assert [name for name in twice if (PACKAGE / f"{name}.py").exists()] == []


def test_nothing_imports_to_its_right() -> None:
    assert upward(at_run_time()) == []


def test_rooms_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for one in at_run_time():
        if one.room and one.target_room and one.target_room != one.room:
            graph.setdefault(one.room, set()).add(one.target_room)
    assert circle_of(graph) == ""


def test_files_do_not_import_each_other_in_a_circle() -> None:
    names = {module_name(path) for path in PACKAGE.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for one in at_run_time():
        top, _, target = one.target.partition(".")
        if top == "glfm_cli" and target in names - {one.importer}:
            graph.setdefault(one.importer, set()).add(target)
    assert circle_of(graph) == ""


def test_latent_models_do_not_import_one_another() -> None:
    from glfm_cli.latent import MODELS

    models = set(MODELS)
    missing = [name for name in models if not is_module(f"glfm_cli.latent.{name}")]
    assert missing == [], "a model lives in the file of its name"
    assert between_models(at_run_time(), models) == []


def test_each_third_party_has_one_home() -> None:
    assert away_from_home(at_run_time()) == []


def test_every_third_party_is_a_declared_dependency() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for extra in OPTIONAL for text in project["optional-dependencies"][extra]]
    texts = [*project["dependencies"], *extras]
    declared = {re.split(r"[^\w.-]", text)[0].lower() for text in texts}
    undeclared = [
        str(one)
        for one in at_run_time()
        if one.third_party
        and DISTRIBUTION_OF.get(one.third_party, one.third_party).lower() not in declared
    ]
    assert undeclared == []


def test_the_package_itself_imports_nothing_but_the_standard_library() -> None:
    own = [one for one in all_imports() if one.importer == ""]
    assert [str(one) for one in own if one.third_party or one.target_room] == []


def test_kernels_import_only_numeric_providers_and_each_other() -> None:
    sources = [path for suffix in ("*.pyx", "*.pxd") for path in PACKAGE.rglob(suffix)]
    assert {path.parent.name for path in sources} <= {"_kernels"}
    foreign = {path.name: foreign_to_kernels(path.read_text(encoding="utf-8")) for path in sources}
    assert {name: names for name, names in foreign.items() if names} == {}


def test_python_beside_the_kernels_needs_numpy_alone() -> None:
    beside = [one for one in at_run_time() if one.room == "_kernels"]
    assert [
        str(one)
        for one in beside
        if one.third_party not in (None, "numpy") or one.target_room not in (None, "_kernels")
    ] == []


def test_the_build_hook_is_imported_by_no_one() -> None:
    target = f"glfm_cli.{BUILD_HOOK}"
    assert [str(one) for one in all_imports() if one.target.startswith(target)] == []


# The rules themselves, each broken once ------------------------------------------------------


@pytest.mark.parametrize(
    ("importer", "source", "rule"),
    [
        ("errors", "import glfm_cli.schema", upward),
        ("links.real", "from ..latent import glfm", upward),
        ("io", "from glfm_cli import impute", upward),
        ("inference.sampling", "def f():\n    from glfm_cli.cli.console import Console", upward),
        ("store", "if TYPE_CHECKING:\n    from glfm_cli.completion import Session", upward),
        ("exploration", 'import_module("glfm_cli.plots").plot_exploration(found)', upward),
        ("completion", "import rich.table", away_from_home),
        ("links", "from threadpoolctl import threadpool_limits", away_from_home),
        ("links.real", "import pyarrow.compute as pc", away_from_home),
    ],
)
def test_a_forbidden_import_is_seen(importer: str, source: str, rule: object) -> None:
    assert callable(rule)
    assert len(rule(list(imports_of(source, importer, in_folder=False)))) == 1


@pytest.mark.parametrize(
    ("importer", "source"),
    [
        ("links.real", "from .link import Link"),
        ("cli.impute", "from glfm_cli import __version__"),
        ("completion", "from glfm_cli.latent import MODELS"),
        ("schema.columns", "import yaml"),
    ],
)
def test_an_allowed_import_passes(importer: str, source: str) -> None:
    found = list(imports_of(source, importer, in_folder=False))
    assert found
    assert upward(found) == []
    assert away_from_home(found) == []


def test_one_model_importing_another_is_seen() -> None:
    source = "from .bsvd import State\nfrom .model import Cells\nfrom glfm_cli.latent import iqgme"
    found = list(imports_of(source, "latent.glfm", in_folder=False))
    models = {"glfm", "bsvd"}
    assert between_models(found, models) == ["latent.glfm:1 imports glfm_cli.latent.bsvd"]


def test_foreign_cimports_are_seen() -> None:
    source = (
        "from libc.math cimport exp\ncimport numpy as cnp\nfrom ._variates cimport draw\n"
        "from scipy.linalg.cython_blas cimport dgemm\nimport pandas, numpy\n"
        "from glfm_cli.links cimport x  # no\nfrom ..errors import GlfmError\n"
    )
    assert foreign_to_kernels(source) == ["..errors", "glfm_cli.links", "pandas"]


# A fast start --------------------------------------------------------------------------------

HELP = [sys.executable, "-m", "glfm_cli", "--help"]
HELP_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def test_help_imports_nothing_heavy() -> None:
    run = subprocess.run(
        [HELP[0], "-X", "importtime", *HELP[1:]],
        env=HELP_ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    modules = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "glfm_cli.cli.app" in modules
    heavy = {"numpy", "scipy", "matplotlib", "pyarrow"}
    assert {name.partition(".")[0] for name in modules} & heavy == set()


def test_completing_a_table_imports_neither_pandas_nor_what_few_runs_need(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1.5,\n2,3\n,4\n5.5,1\n")
    (tmp_path / "t.yaml").write_text("columns: {a: real, b: count}\n")
    short = ["--types", "t.yaml", "--chains", "1", "--warmup", "1", "--draws", "1", "-q"]
    line = ["glfm", "impute", "t.csv", *short]
    code = (
        f"import atexit, sys; from glfm_cli.cli import app; sys.argv = {line}\n"
        "slow = {'pandas', 'scipy.stats', 'scipy.optimize', 'scipy.sparse', 'matplotlib.pyplot',"
        " 'glfm_cli.completion.analysis.versions'}\n"
        "atexit.register(lambda: print(slow & {*sys.modules}, sys.meta_path))\n"
        "app.main()"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=HELP_ENVIRONMENT,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    header, *_, found = run.stdout.splitlines()
    assert header == "a,b"
    assert found.startswith("set() ")
    assert "_NoPandas" not in run.stdout


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs the resource usage of one child")
def test_help_takes_under_a_quarter_second_of_cpu_time() -> None:
    def cpu_seconds() -> float:
        child = subprocess.Popen(HELP, env=HELP_ENVIRONMENT, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        return usage.ru_utime + usage.ru_stime

    assert any(cpu_seconds() < 0.25 for _ in range(20))  # the least: others may be at work
