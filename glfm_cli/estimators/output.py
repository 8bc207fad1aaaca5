"""What `transform` gives back, as scikit-learn's `set_output` chooses it."""

from __future__ import annotations

import importlib
from typing import Any, Self

from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.io.frames import is_frame

_OUTPUTS = ("default", "pandas", "polars")


class WithOutput:
    """A transformer whose output can be chosen.

    _input : which of scikit-learn's tags of inputs are true of it
    """

    _output: str = "default"
    _input: tuple[str, ...]

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` gives back: its usual output, or a frame of a library.

        transform : "default", "pandas" or "polars"; None leaves the choice as it is
        """
        if transform not in (None, *_OUTPUTS):
            raise UsageError("set_output", value=transform, expected=" or ".join(_OUTPUTS))
        self._output = transform or self._output
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(**dict.fromkeys(self._input, True)),
        )


def frame_of(matrix: Array, names: Array, X: Any, library: str) -> Any:
    """Return a matrix as a frame of a library, with the index of X if that is one of pandas."""
    frame = importlib.import_module(library).DataFrame
    if library == "polars":
        return frame(matrix, schema=list(names))
    return frame(matrix, columns=list(names), index=X.index if is_frame(X) else None)
