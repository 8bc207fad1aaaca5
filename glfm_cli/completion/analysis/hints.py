"""What is said of a text that is no regression, above all of what R or statsmodels would take."""

from __future__ import annotations

import re
from collections.abc import Iterable

from glfm_cli.errors import UsageError

MOST_NAMED = 6
USUAL = (
    "Write it as for R, such as 'log(bili) ~ age + sex * copper + I(age^2)'; the response is a "
    "number, a count, of two levels or Surv(time, event)."
)
_HABITS = (
    (r"0|.*-\s*1|-1", "The intercept is always part of the formula: leave '- 1' or '0' out."),
    (r"offset\(.*", "Use the offset as a regressor instead, such as 'y ~ x + log(time)'."),
    (r"\(.*\)\s*(\^|\*\*).*", "Write the products out: (a + b)^2 is 'a * b', (a + b + c)^2 is "
     "'a + b + c + a:b + a:c + b:c'."),
    (r"strata\(.*", "Use strata as regressors: 'strata(site)' is 'site' or 'C(site)'."),
    (r".*\|.*", "Random effects are not supported; use the groups as a regressor."),
    (r"\(.*", "Write the products out: (a + b) * c is 'a * c + b * c'."),
    (r"(poly|bs|ns|cr|s)\(.*", "Write powers out, such as 'x + I(x^2)'."),
    (r".*(\^|\*\*).*", "Write a power as I(x^2)."),
    (r".*-.*", "Write out the terms that stay: 'a * b - a' is 'b + a:b'."),
    (r".*(/|%).*", "Write I(a / b) for a ratio, 'a + a:b' for b within a."),
)  # fmt: skip


def wrong(
    text: str, problem: str, expected: str | None = None, hint: str | None = None
) -> UsageError:
    """Return the error of a text."""
    return UsageError(f"--analysis '{text}': {problem}", expected=expected, hint=hint or USUAL)


def habit(text: str, shown: str, names: Iterable[str]) -> str | None:
    """Return how to write instead a part that other programs take; names : of the columns."""
    if shown == ".":
        left = text.split("~")[0].strip()
        every = [name for name in names if name not in re.findall(r"[\w.]+", left)]
        more = " + ..." if len(every) > MOST_NAMED else ""
        return f"Name the columns: '{left} ~ {' + '.join(every[:MOST_NAMED])}{more}'."
    found = (hint for pattern, hint in _HABITS if re.fullmatch(pattern, shown, re.DOTALL))
    return next(found, None)
