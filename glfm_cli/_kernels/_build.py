"""Build hook: compiles the Cython kernels, named as `cmdclass` in pyproject.toml.

It runs inside the build environment, from the source tree, so it must not import the kernels.
Two variables of the environment make kernels for hunting faults, several times slower:

GLFM_CHECKED=1   indices of memoryviews are checked, and divisors
GLFM_SANITIZE=1  AddressSanitizer and UndefinedBehaviorSanitizer watch every access (gcc, clang)
"""

import copy
import os
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension
from setuptools.command.build_ext import build_ext as _build_ext

HERE = Path(__file__).resolve().parent
# Cython writes the code behind memoryviews once, not into each kernel: half the time of a build.
SHARED = Extension("glfm_cli._kernels._cyutility", ["glfm_cli/_kernels/_cyutility.c"])
# Here while kernels are, or may be, such as hunt faults: the next build makes all of them anew.
HUNTING = HERE / ".hunting"

ARITHMETIC = ["-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd"]
FAST = ["-O3", "-g0"]  # Python's own flags ask for symbols: four fifths of a kernel's size
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SANITIZED = ["-O1", "-g1", "-fno-omit-frame-pointer", *SANITIZERS]


def is_on(variable: str) -> bool:
    """Return whether a variable of the environment asks for a way of compiling."""
    return os.environ.get(variable, "") not in ("", "0")


def directives(checked: bool) -> dict[str, bool | int]:
    """Return the Cython compiler directives of a fast or a checked build."""
    return {
        "language_level": 3,
        "boundscheck": checked,
        "wraparound": False,
        "initializedcheck": checked,
        "cdivision": not checked,
        "freethreading_compatible": True,
    }


def configure(extension: Extension, sanitized: bool) -> None:
    """Give an extension NumPy's headers and random library, and the compiler's options."""
    extension.include_dirs += [np.get_include(), str(HERE)]
    extension.library_dirs.append(str(Path(np.__file__).parent / "random" / "lib"))
    extension.libraries.append("npyrandom")
    extension.define_macros.append(("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"))
    extension.depends += [
        str(path) for pattern in ("*.pxd", "*.pxi", "*.h") for path in HERE.glob(pattern)
    ]
    if sys.platform != "win32":
        extension.libraries.append("m")
        extension.extra_compile_args += [*ARITHMETIC, *(SANITIZED if sanitized else FAST)]
        extension.extra_link_args += SANITIZERS if sanitized else []


class build_ext(_build_ext):
    """`build_ext` with NumPy's headers and its random library, kernels compiled side by side."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = os.cpu_count()

    def finalize_options(self) -> None:
        self.checked, self.sanitized = is_on("GLFM_CHECKED"), is_on("GLFM_SANITIZE")
        modules = self.distribution.ext_modules
        # A kernel of its own, such as a test compiles, shares the code that is installed.
        self.whole = any(extension.name.startswith("glfm_cli.") for extension in modules)
        if self.whole and SHARED not in modules:
            modules.append(SHARED)
        for extension in modules:
            if str(HERE) not in extension.include_dirs:  # several commands come by
                configure(extension, self.sanitized)
        super().finalize_options()

    def run(self) -> None:
        hunting = self.checked or self.sanitized
        if self.whole and (hunting or HUNTING.exists()):
            self.force = True
            HUNTING.touch()
        super().run()
        if self.whole and not hunting:
            HUNTING.unlink(missing_ok=True)

    def build_extensions(self) -> None:
        compiled = cythonize(
            self.extensions,
            compiler_directives=directives(self.checked),
            shared_utility_qualified_name=SHARED.name,
            force=self.force,
            quiet=True,
        )
        sources = {extension.name: extension.sources for extension in compiled}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        # A folder of objects for each kernel: some share C files, and would write the same ones.
        alone = copy.copy(self)
        alone.build_temp = os.path.join(self.build_temp, ext.name)
        _build_ext.build_extension(alone, ext)
