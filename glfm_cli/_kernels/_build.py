"""Build hook: compiles the Cython kernels, named as `cmdclass` in pyproject.toml.

It runs inside the build environment, from the source tree, so it must not import the kernels.
`GLFM_CHECKED=1` in the environment builds with bounds checks, for hunting faults.
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


class build_ext(_build_ext):
    """`build_ext` with NumPy's headers and its random library, kernels compiled side by side."""

    def build_extension(self, ext: Extension) -> None:
        # A folder of objects for each kernel: some share C files, and would write the same ones.
        alone = copy.copy(self)
        alone.build_temp = os.path.join(self.build_temp, ext.name)
        _build_ext.build_extension(alone, ext)

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = os.cpu_count()

    def finalize_options(self) -> None:
        random_lib = Path(np.__file__).parent / "random" / "lib"
        for extension in self.distribution.ext_modules or []:
            if str(HERE) in extension.include_dirs:
                continue
            extension.include_dirs += [np.get_include(), str(HERE)]
            extension.library_dirs.append(str(random_lib))
            extension.libraries.append("npyrandom")
            extension.define_macros.append(("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"))
            extension.depends += [
                str(path) for pattern in ("*.pxd", "*.pxi", "*.h") for path in HERE.glob(pattern)
            ]
            if sys.platform != "win32":
                extension.libraries.append("m")
                extension.extra_compile_args += [
                    "-O3",
                    "-g0",  # Python's own flags ask for symbols: four fifths of a kernel's size
                    "-fno-math-errno",
                    "-fno-trapping-math",
                    "-fopenmp-simd",
                ]
        checked = os.environ.get("GLFM_CHECKED", "") not in ("", "0")
        self.distribution.ext_modules = cythonize(
            self.distribution.ext_modules or [],
            compiler_directives=directives(checked),
            force=checked,
            quiet=True,
        )
        super().finalize_options()
