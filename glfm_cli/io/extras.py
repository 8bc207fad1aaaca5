"""Libraries that only some formats need, and the command that installs them."""

from __future__ import annotations

import importlib
from types import ModuleType

from glfm_cli.errors import UsageError


def need(module: str, extra: str, file: str) -> ModuleType:
    """Return a module of the optional dependencies `extra`.

    Raises UsageError: it is not installed; the hint is the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UsageError(
            f"this kind of file needs the library {module.replace('_', '-')}",
            file=file,
            hint=f"Install it: pip install 'glfm-cli[{extra}]'",
        ) from None
