"""Arguments of a constructor as scikit-learn's parameters of an estimator."""

from __future__ import annotations

import inspect
from typing import Any, Self

from glfm_cli.errors import UsageError


class WithParameters:
    """An estimator whose constructor keeps each argument under its name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor; none has parameters of its own."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor.

        Raises UsageError: there is no such argument.
        """
        for name, value in params.items():
            if name not in self._parameters():
                known = ", ".join(self._parameters())
                raise UsageError(
                    f"{type(self).__name__} has no parameter '{name}'", expected=f"one of {known}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {k: v for k, v in self.get_params().items() if v != self._parameters()[k].default}
        shown = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{type(self).__name__}({shown})"

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        """Return the constructor's parameters by name."""
        signature = inspect.signature(cls.__init__).parameters
        return {name: one for name, one in signature.items() if name != "self"}
