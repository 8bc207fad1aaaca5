"""What `transform` gives back, as scikit-learn's `set_output` chooses it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any, Self

from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.io.frames import is_frame

_OUTPUTS = ("default", "pandas", "polars")


class WithOutput:
    """A transformer whose output can be chosen.

    _input : which of scikit-learn's tags of inputs are true of it
    """

    _sklearn_output_config: Mapping[str, str] = {}  # so named, `clone` copies it
    _input: tuple[str, ...]

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` gives back: its usual output, or a frame of a library.

        transform : "default", "pandas" or "polars"; None leaves the choice as it is, at first that
            of scikit-learn's `set_config`
        """
        if transform not in (None, *_OUTPUTS):
            raise UsageError("set_output", value=transform, expected=" or ".join(_OUTPUTS))
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    @property
    def _output(self) -> str:
        """What was chosen last, here or for all of scikit-learn."""
        if self._sklearn_output_config:
            return self._sklearn_output_config["transform"]
        sklearn: Any = sys.modules.get("sklearn")
        return "default" if sklearn is None else str(sklearn.get_config()["transform_output"])

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
