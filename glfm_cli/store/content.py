"""What a saved fit says of its table: the links of its columns, and the table as encoded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from glfm_cli.arrays import Array, Groups
from glfm_cli.encoding import Data, EncodedColumn, predictors_of, time_of
from glfm_cli.encoding.trials import MOST_TRIALS
from glfm_cli.errors import StoreError
from glfm_cli.inference.chain import inner
from glfm_cli.latent.capabilities import HasFactors
from glfm_cli.latent.model import FLOAT_MAX, take
from glfm_cli.links import Link, link_from
from glfm_cli.schema import Column
from glfm_cli.store.arrays import read_one, to_stream
from glfm_cli.store.folder import DATA, LINKS, map_file
from glfm_cli.store.header import Header, hash_of_data
from glfm_cli.store.ids import ids_out, read_ids
from glfm_cli.store.log import broken


def links_out(links: Sequence[Link]) -> bytes:
    """Return the constants of links as the bytes of a file."""
    constants = {
        f"{d}.{name}": value
        for d, link in enumerate(links)
        for name, value in link.constants().items()
    }
    constants["columns"] = np.array(len(links), dtype=np.int64)
    return to_stream(constants)


def read_links(folder: Path, header: Header, columns: Sequence[Column]) -> tuple[Link, ...]:
    """Return the links of a saved fit from their constants."""
    buffer = map_file(folder, LINKS)
    try:
        if hashlib.sha256(memoryview(buffer)).hexdigest() != header.links_hash:
            raise ValueError("its hash is another")
        constants = read_one(buffer)
        if int(take(constants, "columns", np.int64, ())) != len(columns):
            raise ValueError(f"it is not of {len(columns)} columns")
        links, rates = [], isinstance(header.latent, HasFactors)
        for d, (column, modelled) in enumerate(zip(columns, header.modelled, strict=True)):
            part = inner(constants, f"{d}.")
            try:
                n_levels, config = len(modelled.levels), header.link_config
                links.append(link_from(column, n_levels, part, config, rates=rates))
            except ValueError as error:
                raise ValueError(f"column '{column.name}': {error}") from None
    except ValueError as error:
        raise broken(folder, LINKS, error) from None
    return tuple(links)


def data_out(data: Data) -> bytes:
    """Return an encoded table as the bytes of a file; 0 stands in cells that are not observed."""
    arrays: dict[str, Array] = {"rows": np.array(data.n_rows, dtype=np.int64)}
    for d, encoded in enumerate(data.columns):
        arrays[f"{d}.x"] = np.where(encoded.observed, encoded.x, 0.0)
        arrays[f"{d}.observed"] = np.packbits(encoded.observed)
        arrays[f"{d}.wanted"] = np.packbits(encoded.requested)
        if encoded.ends is not None:
            arrays[f"{d}.ends"] = np.nan_to_num(encoded.ends).ravel()  # infinite ones: the largest
            arrays[f"{d}.between"] = np.packbits(~np.isnan(encoded.ends[:, 0]))
        if encoded.trials is not None:
            arrays[f"{d}.trials"] = np.nan_to_num(encoded.trials, nan=-1.0)
    if data.groups is not None:
        arrays["groups"] = data.groups.code
    if data.weights is not None:
        arrays["weights"] = data.weights
    if data.id_cells is not None:
        arrays |= ids_out(data.id_cells)
    return to_stream(arrays)


def read_data(folder: Path, header: Header, columns: Sequence[Column]) -> Data:
    """Return the encoded table of a saved fit; it must be the one that was hashed."""
    n_rows = header.n_rows
    try:
        arrays = read_one(map_file(folder, DATA))
        encoded = []
        for d, (column, modelled) in enumerate(zip(columns, header.modelled, strict=True)):
            packed = (-(-n_rows // 8),)
            observed, requested = (
                np.unpackbits(take(arrays, f"{d}.{name}", np.uint8, packed), count=n_rows) == 1
                for name in ("observed", "wanted")
            )
            x = take(arrays, f"{d}.x", np.float64, (n_rows,), largest=FLOAT_MAX)
            if modelled.levels:
                _check_codes(x, len(modelled.levels), column.name)
            x = np.where(observed, x, np.nan)
            ends = _read_ends(arrays, d, n_rows) if f"{d}.ends" in arrays else None
            trials = _read_trials(arrays, d, n_rows) if column.binomial else None
            for array in (x, observed, requested):
                array.setflags(write=False)
            part = EncodedColumn(column, modelled.index, x, observed, requested, modelled.levels)
            encoded.append(replace(part, ends=ends, trials=trials, style=modelled.style))
        groups = _read_groups(arrays, header, encoded)
        weights = _read_weights(arrays, n_rows)
        ids = read_ids(arrays, header.ids, n_rows)
    except ValueError as error:
        raise broken(folder, DATA, error) from None
    data = Data(n_rows, tuple(encoded), header.notes, header.ids, (), groups, weights, ids)
    if hash_of_data(data) != header.data_hash:
        raise StoreError(
            "is not the table that the fit was made with: its hash is another",
            file=str(folder / DATA),
        )
    return data


def _read_groups(
    arrays: Mapping[str, Array], header: Header, columns: Sequence[EncodedColumn]
) -> Groups | None:
    """Return which rows belong together."""
    if header.groups is None:
        return None
    code = take(arrays, "groups", np.int64, (header.n_rows,))
    if np.any((code < 0) | (code >= max(len(header.groups), 1))):
        raise ValueError("'groups' has a number that is no group's")
    return Groups(code, header.groups, *time_of(columns), predictors_of(columns))


def _read_weights(arrays: Mapping[str, Array], n_rows: int) -> Array | None:
    """Return how many units of a population each row stands for, where that is known."""
    if "weights" not in arrays:
        return None
    weights = take(arrays, "weights", np.float64, (n_rows,), largest=FLOAT_MAX)
    if np.any(weights < 0.0) or not weights.any():
        raise ValueError("'weights' are no weights of rows")
    return weights


def _read_ends(arrays: Mapping[str, Array], d: int, n_rows: int) -> Array:
    """Return the ends of the intervals of a column, NaN at other cells."""
    packed = take(arrays, f"{d}.between", np.uint8, (-(-n_rows // 8),))
    ends = take(arrays, f"{d}.ends", np.float64, (2 * n_rows,), largest=FLOAT_MAX).reshape(-1, 2)
    between = np.unpackbits(packed, count=n_rows) == 1
    ends = np.where(np.abs(ends) == FLOAT_MAX, np.copysign(np.inf, ends), ends)
    return np.where(between[:, None], ends, np.nan)


def _read_trials(arrays: Mapping[str, Array], d: int, n_rows: int) -> Array:
    """Return the trials of a column of successes, NaN where they are not known."""
    trials = take(arrays, f"{d}.trials", np.float64, (n_rows,))
    if np.any((trials != np.floor(trials)) | (trials < -1.0) | (trials > MOST_TRIALS)):
        raise ValueError(f"'{d}.trials' are no numbers of trials")
    return np.where(trials < 0.0, np.nan, trials)


def _check_codes(x: Array, n_levels: int, name: str) -> None:
    """Raise ValueError unless these are codes of levels, which index arrays later."""
    if np.any((x < 0) | (x >= n_levels) | (x != np.floor(x))):
        raise ValueError(f"column '{name}' has a code that is no level's")
