"""Errors of estimators in the words of Python: arguments where commands have options."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from glfm_cli.errors import GlfmError

Method = TypeVar("Method", bound=Callable[..., Any])


def in_words_of_python(method: Method) -> Method:
    """Return a method of an estimator whose errors name its arguments, not options."""

    @wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except GlfmError as error:
            names = self.get_params()
            error.problem = _reworded(error.problem, names)
            error.hint = error.hint and _reworded(error.hint, names)
            error.args = (error.message(),)
            raise

    return cast(Method, wrapped)


def _reworded(text: str, names: dict[str, Any]) -> str:
    """Return a text with arguments in place of those options that have one of their name."""
    text = re.sub(r"--set (\w+)", r"settings: '\1'", text)

    def argument(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name not in names:
            return found[0]
        return f'`{name}="{value}"`' if value else name

    text = re.sub(r"`--(\w+) (\w+)`", argument, text)
    return re.sub(r"--(\w+)()", argument, text)
