"""Wrong versions of the compiled kernels, made from its source: tests must tell them apart.

Each mutant replaces one line of the production source, is compiled on the spot, and shares
everything else with the kernel that ships.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

KERNELS = Path(__file__).resolve().parents[2] / "glfm_cli" / "_kernels"

# Of each kernel, name: (text of the production source, what stands there instead)
MUTANTS = {
    "new features from their prior": (
        "m.new_weight[k] += log_evidence(m, group, m.q[group], m.R2[group], k)",
        "pass",
    ),
    "noise variance without the square": (
        "y[s] *= g[s]\n            mean[s] += y[s] * y[s]",
        "y[s] *= g[s]\n            mean[s] += y[s]",
    ),
    "singletons dropped first": (
        "update_bits(m, n_single)",
        "update_bits(m, 0)",
    ),
}
BITS_MUTANTS = {
    "a new row among those counted": (
        "others = count - bit if shared else count",
        "others = count - bit",
    ),
    "intervals as if certain before the flip": (
        "points_gain(r, d, weights) + r.moved.log_p - r.now.log_p",
        "points_gain(r, d, weights) + r.moved.log_p",
    ),
}
# The same law without what saves time, and with more than it may save.
EVERY_BIT, FEWER_BITS = "every bit evaluated", "bits passed over that flip"
BOUNDS = {
    EVERY_BIT: ("m.gain[k] = m.odds[k] + MARGIN", "m.gain[k] = INFINITY"),
    FEWER_BITS: ("m.gain[k] = m.odds[k] + MARGIN", "m.gain[k] = m.odds[k] - 0.5"),
}
_SOURCES = {"_glfm": ("_vector", "_normal"), "_glfm_bits": ("_vector", "_normal")}

_SETUP = """
import sys
from setuptools import Extension, setup
from glfm_cli._kernels._build import build_ext
setup(
    name="mutant",
    version="0",
    py_modules=[],
    script_args=["build_ext", "--inplace", "--quiet"],
    ext_modules=[Extension(sys.argv[1], sys.argv[2:], include_dirs=["."])],
    cmdclass={"build_ext": build_ext},
)
"""


def mutated(name: str) -> tuple[str, dict[str, str]]:
    """Return the name of a mutant's kernel, and its sources by file, with one line replaced."""
    kernel = "_glfm_bits" if name in BITS_MUTANTS else "_glfm"
    right, wrong = (BITS_MUTANTS | MUTANTS | BOUNDS)[name]
    sources = {
        path.name: path.read_text(encoding="utf-8")
        for suffix in (".pyx", ".pxi")
        for path in KERNELS.glob(f"{kernel}*{suffix}")
    }
    times = sum(text.count(right) for text in sources.values())
    assert times == 1, f"the line of mutant '{name}' is {times} times in the source, expected once"
    return kernel, {file: text.replace(right, wrong) for file, text in sources.items()}


def compile_mutant(name: str, folder: Path) -> ModuleType:
    """Return the kernel module with one line replaced, compiled in `folder`."""
    kernel, sources = mutated(name)
    for shared in _SOURCES[kernel]:
        for suffix in (".h", ".c"):
            shutil.copy(KERNELS / (shared + suffix), folder)
    for file, text in sources.items():
        (folder / file).write_text(text, encoding="utf-8")
    (folder / "setup.py").write_text(_SETUP, encoding="utf-8")
    built = subprocess.run(
        [sys.executable, "setup.py", kernel, f"{kernel}.pyx"]
        + [f"{shared}.c" for shared in _SOURCES[kernel]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(KERNELS.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (library,) = [path for path in folder.iterdir() if path.suffix in (".so", ".pyd")]
    spec = importlib.util.spec_from_file_location(kernel, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
