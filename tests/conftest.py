"""What all tests share: seeds, the paths of the checkout, and the command line as a user runs it.

Every test is deterministic. `GLFM_TEST_SEED=123 python -m pytest` runs them from another seed,
hypothesis included, to hunt for rare failures.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SEED_VARIABLE = "GLFM_TEST_SEED"
DEFAULT_SEED = 20260101
INSTALL = "pip install -e '.[dev]'"

# Tests run in as many processes as there are processors: threads of BLAS beside them would spend
# their time waiting for one another. Set before NumPy is imported, which reads it.
os.environ.setdefault("OMP_NUM_THREADS", "1")


# Permissions ---------------------------------------------------------------------------------

_CAPABILITIES_VERSION = 0x20080522
_PAST_PERMISSIONS = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@pytest.fixture
def bound_by_permissions() -> Iterator[None]:
    """Let the permissions of files bind this thread, root's too (Linux; capabilities(7))."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        yield
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("no permission binds root here")
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable, each of the two halves
    assert libc.capget(header, sets) == 0
    effective = sets[0]
    sets[0] &= ~_PAST_PERMISSIONS
    assert libc.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = effective
        assert libc.capset(header, sets) == 0


# Seeds ---------------------------------------------------------------------------------------


def run_seed() -> int:
    """Return the seed of this test run, a non-negative integer."""
    text = os.environ.get(SEED_VARIABLE, str(DEFAULT_SEED))
    if not text.isdecimal():
        raise pytest.UsageError(f"{SEED_VARIABLE}: found {text!r}, expected a whole number >= 0")
    return int(text)


# No deadline: the time of one example says more about the machine's load than about the code.
hypothesis.settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "hunt", hypothesis.settings.get_profile("fixed"), derandomize=False, print_blob=True
)


def pytest_configure(config: pytest.Config) -> None:
    """Choose hypothesis's seed; runs before its own plugin reads the option."""
    # A shell starts background jobs with Ctrl-C ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = run_seed()
    if SEED_VARIABLE not in os.environ:
        hypothesis.settings.load_profile("fixed")
        return
    hypothesis.settings.load_profile("hunt")
    if config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(seed)


@pytest.fixture(scope="session")
def seed() -> int:
    """The seed of this run: give it to `numpy.random.default_rng`, or add to it."""
    return run_seed()


# Compiled kernels ----------------------------------------------------------------------------


def stale_kernels(repository: Path) -> list[str]:
    """Return one line for each kernel that is not compiled, or older than its sources.

    The folder of the checkout comes before an installed package on the import path, so kernels
    must be compiled in place; and an old one would let the tests pass on yesterday's code.
    """
    build = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    found = []
    for extension in build["tool"]["setuptools"]["ext-modules"]:
        sources = [repository / source for source in extension["sources"]]
        folder = sources[0].parent
        shared = [path for pattern in ("*.pxd", "*.pxi", "*.h") for path in folder.glob(pattern)]
        compiled = repository / (extension["name"].replace(".", "/") + suffix)
        if not compiled.exists():
            found.append(f"{extension['name']} is not compiled")
            continue
        newer = [
            path.name
            for path in (*sources, *shared)
            if path.exists() and path.stat().st_mtime > compiled.stat().st_mtime
        ]
        if newer:
            found.append(f"{extension['name']} is older than {', '.join(sorted(newer))}")
    return found


STALE = stale_kernels(REPOSITORY)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let no run succeed on kernels that are not those of the sources."""
    if STALE and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which kernels must be compiled, and how."""
    if STALE:
        terminalreporter.section("compiled kernels", red=True)
        for line in STALE:
            terminalreporter.write_line(f"{line}.", red=True)
        terminalreporter.write_line(f"This run counts as failed. Run: {INSTALL}", red=True)


# Paths and the command line ------------------------------------------------------------------


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def sample_data(repository: Path) -> Path:
    """The folder with the small real tables and their types files."""
    return repository / "sample_data"


class Finished(NamedTuple):
    """What a command left behind."""

    returncode: int
    output: bytes  # stdout, for comparing bytes and for binary formats
    stdout: str  # the same as text, line ends as written
    stderr: str


@pytest.fixture
def glfm(tmp_path: Path, repository: Path) -> Callable[..., Finished]:
    """Run `glfm` in a process of its own, by default in the test's temporary folder.

    `glfm("impute", path, stdin=b"...", cwd=..., env={...}, timeout=60)` returns a `Finished`.
    A value of None in `env` removes the variable. Warnings are errors there too.
    """

    def run(
        *arguments: str | Path,
        stdin: bytes = b"",
        cwd: Path = tmp_path,
        env: Mapping[str, str | None] | None = None,
        timeout: float = 60,
    ) -> Finished:
        changes = {
            "PYTHONPATH": str(repository),
            "PYTHONWARNINGS": "error",
            "PYTHONIOENCODING": "utf-8",
            "COLUMNS": "100",
            "GLFM_DEBUG": None,
            "OMP_NUM_THREADS": None,  # as a user's: it is the package that holds BLAS
            **(env or {}),
        }
        environment = {key: os.environ[key] for key in os.environ if key not in changes}
        environment |= {key: value for key, value in changes.items() if value is not None}
        done = subprocess.run(
            [sys.executable, "-m", "glfm_cli", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env=environment,
            timeout=timeout,
            check=False,
        )
        return Finished(
            done.returncode, done.stdout, done.stdout.decode(errors="replace"), done.stderr.decode()
        )

    return run


@pytest.fixture(scope="session")
def benchmark(repository: Path) -> Callable[..., list[str]]:
    """Run a benchmark, warnings as errors: `benchmark("speed.py", "--rows", "200")`, its lines."""

    def run(script: str, *arguments: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, f"benchmarks/{script}", *arguments],
            cwd=repository,
            env={**os.environ, "PYTHONPATH": str(repository), "PYTHONWARNINGS": "error"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run
