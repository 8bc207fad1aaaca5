"""The options that tasks share, each group a frozen dataclass; what was not said is None.

Public functions take the groups whole (`sampling=Sampling(chains=4)`) or their fields as keywords
(`chains=4`); commands make them of what the user wrote.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

from glfm_cli.errors import UsageError

CHAINS = 8
STARTS = 4  # of a classifier's fit
WARMUP = 100
DRAWS = 20
THIN = 2
SEED = 0
CHECKPOINT = 5.0  # seconds between two saved states
LEAST = {"chains": 1, "warmup": 0, "draws": 1, "thin": 1, "seed": 0}


@dataclass(frozen=True)
class Sampling:
    """How a model is sampled.

    A new run fills in the defaults, a resumed one what it was begun with.

    Attributes
    ----------
    model : str, optional
        A latent model of `glfm_cli.latent.MODELS`; if left out the first that does what is asked.
    chains, warmup, draws, thin : int, optional
        Number of independent chains (auto 7, others 8, and up to 16 in small tables, as many as
        precision asks for); sweeps discarded at the start of each (60 of auto and glfm, 100 of
        others and to explore); draws kept of each (20); sweeps from one kept draw to the next (4
        of auto and glfm, 2 of others).
    seed : int, optional
        Seed of the random numbers; the result does not depend on `threads`. 0 if left out.
    settings : mapping, optional
        Fields of the model's and the links' configuration, by name.
    threads : int, optional
        Chains that run at the same time; by default as many as there are processors.
    time_limit : float, optional
        Seconds of sampling after which the draws so far are used.
    precision : float, optional
        Run as many more chains as it takes until another seed would move half of the estimates by
        less than this part of their cell's standard deviation.
    effort : {"quick", "normal", "thorough"}, optional
        What chains, warmup, draws and thin are where they are not said.
    engine : {"local", "processes", "dask"}, optional
        Where chains, or the fits of an evaluation, are made: by this process and those of this
        machine that it starts, by processes of this machine, or on a Dask cluster. The result is
        the same. "local" if left out.
    scheduler : str, optional
        The address of the cluster's scheduler, as `tcp://HOST:8786`.
    """

    model: str | None = None
    chains: int | None = None
    warmup: int | None = None
    draws: int | None = None
    thin: int | None = None
    seed: int | None = None
    settings: Mapping[str, object] | None = None
    threads: int | None = None
    time_limit: float | None = None
    precision: float | None = None
    effort: str | None = None
    engine: str | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        for name, least in {**LEAST, "threads": 1}.items():
            object.__setattr__(self, name, whole(name, getattr(self, name), least))
        for name, what in (("time_limit", "seconds"), ("precision", "a number")):
            value = getattr(self, name)
            known = isinstance(value, Real) and 0 < float(value) < float("inf")
            if value is not None and not known:
                option = name.replace("_", "-")
                raise UsageError(f"--{option}", value=value, expected=f"{what} above 0")
            object.__setattr__(self, name, None if value is None else float(value))
        if not isinstance(self.settings, Mapping | None):
            raise UsageError("--set", value=self.settings, expected='such as {"alpha": 2}')

    def written(self) -> dict[str, object]:
        """Return what was said, by the names of the command's options."""
        return _written(self, {"time_limit": "time-limit", "settings": "set"})

    def length(self, chains: int) -> dict[str, int]:
        """Return chains, warmup, draws, thin and seed, the defaults where nothing was said."""
        default = {"chains": chains, "warmup": WARMUP, "draws": DRAWS, "thin": THIN, "seed": SEED}
        return {n: d if getattr(self, n) is None else getattr(self, n) for n, d in default.items()}

    def check_none(self, more: Mapping[str, object] | None = None) -> None:
        """Raise UsageError when options of sampling come with a saved fit."""
        for name in {**self.written(), **(more or {})}:
            raise UsageError(
                f"--{name} is for sampling, but a saved fit has been sampled",
                hint="Leave it out, or give the table itself.",
            )


@dataclass(frozen=True)
class Saving:
    """Where a run is saved.

    Attributes
    ----------
    save : path, optional
        A new folder NAME.glfm to keep the fit in; `load_fit` reads it.
    resume : path, optional
        The folder of an earlier run of this table to go on with: one that was cut short, or a
        complete one with more `chains` or `draws` (a chain). What else fixes the draws is taken
        from there; the result is, byte for byte, that of one uninterrupted run.
    partial : path, optional
        The output whose partial work is kept beside it until the run is complete.
    with_data : bool
        Whether the encoded table is kept too.
    checkpoint : float
        Seconds between two saved states; less often where saving takes long.
    """

    save: Path | None = None
    resume: Path | None = None
    partial: Path | None = None
    with_data: bool = True
    checkpoint: float = CHECKPOINT

    def __post_init__(self) -> None:
        for name in ("save", "resume", "partial"):
            value = getattr(self, name)
            if not isinstance(value, str | PathLike | None):
                raise UsageError(f"--{name}", value=value, expected="the name of a folder")
            object.__setattr__(self, name, None if value is None else Path(value))
        if self.save is not None and self.resume is not None:
            raise UsageError(
                "--save and --resume cannot be used together",
                hint="--resume continues in the folder it is given; copy that first to keep it.",
            )
        if not self.with_data and self.save is None:
            raise UsageError(
                "--no-data needs --save", hint="Give --save DIR.glfm with it."
            )
        every = self.checkpoint
        if not (isinstance(every, Real) and 0 <= float(every) < float("inf")):
            raise UsageError("--checkpoint", value=every, expected="seconds from 0")

    def written(self) -> dict[str, object]:
        """Return what was said, by the names of the command's options."""
        return _written(replace(self, partial=None), {"with_data": "no-data"})


@dataclass(frozen=True)
class Scaling:
    """How much of a large table a model is learnt from.

    learn_rows : int, "auto" or "all"; learn what all rows share from so many rows, drawn so that
        rare levels and rare patterns of missing cells are among them; all rows are then completed
        given that. "auto" takes all rows of a table that is not large. All if left out.
    memory : bytes, or `500M`, `2G`: a file that takes more is completed in batches of rows, with a
        fit or given `learn_rows`. With a fit half of what is free if left out.
    """

    learn_rows: int | str | None = None
    memory: int | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", _bytes(self.memory))
        n = self.learn_rows
        if isinstance(n, str) and n.isdecimal():
            object.__setattr__(self, "learn_rows", n := int(n))
        counts = isinstance(n, Integral) and not isinstance(n, bool) and n >= 1
        if not (n is None or counts or n in ("auto", "all")):
            raise UsageError("--learn-rows", value=n, expected="a whole number from 1, auto or all")
        object.__setattr__(self, "learn_rows", int(n) if isinstance(n, Integral) else n)

    @property
    def most_bytes(self) -> int | None:
        """Return the memory in bytes, None where nothing was said."""
        return self.memory if isinstance(self.memory, int) else None

    def written(self) -> dict[str, object]:
        """Return what was said, by the names of the command's options, of what is about a fit."""
        return _written(replace(self, memory=None), {"learn_rows": "learn-rows"})


def _bytes(size: int | str | None) -> int | None:
    """Return a size of memory in bytes."""
    if size is None:
        return None
    text = str(size).strip().upper().removesuffix("B")
    power = "KMGT".find(text[-1:]) + 1 if text[-1:] else 0
    number = text[:-1] if power else text
    try:
        found = int(float(number) * 1024**power)
    except (ValueError, OverflowError):
        found = 0
    if found < 1:
        raise UsageError("--memory", value=size, expected="bytes above 0, as 500M or 2G")
    return found


@dataclass(frozen=True)
class MatrixOptions:
    """Options of a matrix given as triplets, and the features of its rows and columns.

    Attributes
    ----------
    pairs : table, frame or path, optional
        The cells requested, in columns named as those of the ids; all without a value if left out.
    all_pairs : bool
        Whether these may be more than ten million.
    recommend : int, optional
        In place of `pairs`, so many columns of each row, of those in which it has no value yet:
        those with the highest expected values, of counts the likeliest to have one; with `fit` of
        each new row.
    rows : table, frame or path, optional
        The rows that `recommend` is about, in a column named as that of the ids.
    row_features, column_features : (table, types), optional
        What is known of rows and of columns, a row each, with one column of role id; tables,
        frames or paths. With `resume` and `fit` their types are those of the folder, and None will
        do here.
    missingness_features : int, optional
        So many leading singular vectors of the pattern of observed cells are covariates of rows
        and columns, too.
    """

    pairs: Any = None
    all_pairs: bool = False
    recommend: int | None = None
    rows: Any = None
    row_features: Any = None
    column_features: Any = None
    missingness_features: int | None = None

    def __post_init__(self) -> None:
        for name in ("recommend", "missingness_features"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))

    def written(self) -> dict[str, object]:
        """Return what was said, by the names of the command's options."""
        return _written(self, {name.name: name.name.replace("_", "-") for name in fields(self)})


def whole(name: str, value: object, least: int = 1) -> int | None:
    """Return an option that counts as Python's own number, None where nothing was said.

    NumPy's cannot be written as JSON. Raises UsageError: it is no whole number, or below `least`.
    """
    if value is None:
        return None
    if not isinstance(value, Integral) or value < least:
        option = name.replace("_", "-")
        raise UsageError(f"--{option}", value=value, expected=f"a whole number from {least}")
    return int(value)


def names_given(name: str, value: object) -> tuple[str, ...] | None:
    """Return an option that lists names, one alone as it is, None where nothing was said.

    Raises UsageError: it is no list of texts.
    """
    if value is None:
        return None
    given = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    names = tuple(one for one in given if isinstance(one, str))
    if len(names) < len(given):
        raise UsageError(f"--{name}", value=value, expected="names of columns")
    return names


def gather(options: Mapping[str, Any], *groups: Any) -> tuple[Any, ...]:
    """Return the groups with the options laid over the fields of their names.

    Raises TypeError: an option is a field of no group, as Python says it of a function's keywords.
    """
    names = [{field.name for field in fields(group)} for group in groups]
    for name in options:
        if not any(name in known for known in names):
            caller = inspect.stack()[1].function
            raise TypeError(f"{caller}() got an unexpected keyword argument '{name}'")
    return tuple(
        replace(group, **{n: v for n, v in options.items() if n in known})
        for group, known in zip(groups, names, strict=True)
    )


def _written(group: Any, renamed: Mapping[str, str]) -> dict[str, object]:
    """Return the fields that are not as they are when nothing is said."""
    plain, values = asdict(type(group)()), vars(group)
    differs = {n: v for n, v in values.items() if _is_said(v, plain[n])}
    return {renamed.get(name, name): value for name, value in differs.items()}


def _is_said(value: object, plain: object) -> bool:
    """Return whether a field is not as it is by default; frames would compare cell by cell."""
    if plain is None:
        return value is not None and not (isinstance(value, Mapping) and not value)
    return value != plain
