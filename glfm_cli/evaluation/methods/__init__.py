"""The ways to complete a table that are compared, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from glfm_cli.errors import UsageError
from glfm_cli.evaluation.methods.counts import FactorMethod, Unigram
from glfm_cli.evaluation.methods.learners import Iterative, Neighbours
from glfm_cli.evaluation.methods.means import MEANS
from glfm_cli.evaluation.methods.models import ModelMethod
from glfm_cli.evaluation.methods.program import Program, parse_program
from glfm_cli.evaluation.methods.sibp import Sibp
from glfm_cli.evaluation.methods.simple import Mean, RandomValue
from glfm_cli.evaluation.task import Method
from glfm_cli.latent import MODELS
from glfm_cli.options import MatrixOptions, Sampling
from glfm_cli.schema.phrases import did_you_mean

METHODS = ("auto", "mean")  # of a table; where that model cannot, the one that completes it

_BUILT_IN: dict[str, Callable[[Sampling], Method]] = {
    "sibp": Sibp,
    "marginal": lambda sampling: ModelMethod("marginal", "glfm", sampling, {"max_features": 0}),
    "mean": lambda _: Mean(),
    "draw": lambda _: RandomValue(),
    "knn": lambda _: Neighbours(),
    "iterative": lambda _: Iterative(),
}


def _variant(name: str, **fixed: object) -> Callable[[Sampling], Method]:
    return lambda sampling: FactorMethod(name, "cnpf", sampling, fixed)


_OTHERS: dict[str, dict[str, Callable[[Sampling], Method]]] = {
    "dense": _BUILT_IN,
    "sparse": {name: lambda _, method=method: method for name, method in MEANS.items()},  # type: ignore[misc]
    "counts": {
        "scaled-hgp": _variant("scaled-hgp", correlated=False),
        "hgp": _variant("hgp", correlated=False, scaled=False),
        "unigram": lambda _: Unigram(),
    },
}


def known_methods(layout: str = "dense") -> list[str]:
    """Return the names of all methods for a layout but external programs."""
    models = [name for name, model in MODELS.items() if layout in model.layouts]
    return [*models, *_OTHERS[layout]]


def choose_methods(
    names: Sequence[str] | None,
    programs: Mapping[str, str],
    sampling: Sampling,
    *,
    timeout: float,
    matrix: MatrixOptions | None = None,
    layout: str = "dense",
) -> tuple[Method, ...]:
    """Return the methods of some names, external programs after the others.

    names : of models, of built-in methods, or of programs; some that say most if left out
    programs : names to commands, as `parse_program` takes them
    timeout : seconds that a program may take
    matrix : what is known of a matrix; None of a table
    layout : {"dense", "sparse", "counts"}; of what is completed

    Raises UsageError: a name is unknown, given twice, or that of two things; a setting fits no
        model.
    """
    for name in programs:
        if name in known_methods():
            raise UsageError(
                f"--method {name}: the name is taken",
                expected=f"another name than {', '.join(known_methods())}",
            )
    known, built_in = known_methods(layout), _OTHERS[layout]
    if names is None:
        names = METHODS if layout == "dense" else (known[0], *built_in)
    every = [*names, *(name for name in programs if name not in names)]
    chosen: list[Method] = []
    for name in every:
        if name in (method.name for method in chosen):
            raise UsageError("--methods", value=f"'{name}' twice", expected="each method once")
        if name in programs:
            chosen.append(parse_program(name, programs[name], timeout))
        elif name not in known:
            raise _unknown(name, [*known, *programs])
        elif name in MODELS:
            of_model = FactorMethod if layout == "counts" else ModelMethod
            chosen.append(of_model(name, name, sampling, {}, matrix or MatrixOptions()))
        else:
            chosen.append(built_in[name](sampling))
    if not chosen:
        raise UsageError("--methods", expected=f"some of {', '.join(known)}")
    _check_settings(chosen, sampling)
    return tuple(chosen)


def _check_settings(methods: Sequence[Method], sampling: Sampling) -> None:
    """Raise UsageError for a setting that no model among the methods has."""
    models = [method for method in methods if isinstance(method, ModelMethod)]
    for name in sampling.settings or {}:
        if not models:
            raise UsageError(f"--set {name}", expected="a model among the methods")
        if not any(name in model.known_settings() for model in models):
            models[0].configure(
                {name: (sampling.settings or {})[name]}
            )  # which raises, with a hint


def _unknown(name: str, known: Sequence[str]) -> UsageError:
    other = "Another program is added with --method 'NAME=COMMAND'."
    return UsageError(
        "unknown method",
        value=f"'{name}'",
        expected=f"some of {', '.join(known)}",
        hint=" ".join(filter(None, (did_you_mean(name, known), other))),
    )
