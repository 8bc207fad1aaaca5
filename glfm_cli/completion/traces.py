"""The traces of a run as NetCDF, the form that ArviZ and xarray read."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from glfm_cli import __version__
from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.io import atomic_write, check_writable

SUFFIX = ".nc"
GROUP = "posterior"  # where ArviZ looks for draws of parameters
_NEEDED = ("xarray", "h5netcdf", "h5py")
_OF_COLUMN = re.compile(r"(?:noise|cell_(?P<row>\d+))_(?P<column>\d+)")


def check_traces(path: Path | str) -> None:
    """Raise now what `write_traces` would raise after the work.

    Raises UsageError: the name does not end in .nc, or xarray or h5netcdf is not installed;
        OutputError: the folder is missing or not writable.
    """
    if not str(path).lower().endswith(SUFFIX):
        raise UsageError("the traces are NetCDF", file=str(path), expected="a name ending in .nc")
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"writing NetCDF needs the Python packages {' and '.join(missing)}",
            file=str(path),
            hint="Install them with `pip install 'glfm-cli[arviz]'`.",
        )
    check_writable(path)


def write_traces(
    path: Path | str, traces: Mapping[str, Array], data: Any, *, model: str, seed: int
) -> None:
    """Write every traced quantity as (chain, draw) to the group `posterior` of a NetCDF file.

    Chains and draws count from 1. Attributes name the column, and the data row, of a quantity.

    path : a name that `check_traces` has passed
    traces : mapping of str to (chains, draws) float64; as `Posterior.traces` and `trace_cells` name
        them
    data : its columns lend their names
    model, seed : attributes of the file
    """
    with tempfile.TemporaryDirectory(prefix="glfm-") as folder:  # HDF5 writes to a name only
        file = os.path.join(folder, "traces.nc")
        _dataset(traces, data, model, seed).to_netcdf(file, group=GROUP, engine="h5netcdf")
        with atomic_write(path) as out:
            out.write(Path(file).read_bytes())


def _dataset(traces: Mapping[str, Array], data: Any, model: str, seed: int) -> Any:
    """Return the traces as an `xarray.Dataset`."""
    import xarray

    variables = {}
    for name, trace in traces.items():
        about: dict[str, Any] = {}
        found = _OF_COLUMN.fullmatch(name)
        if found:
            about["column"] = data.columns[int(found["column"])].column.name
            if found["row"]:
                about["row"] = int(found["row"])
        variables[name] = (("chain", "draw"), trace, about)
    n_chains, n_draws = next(iter(traces.values())).shape
    return xarray.Dataset(
        variables,
        coords={"chain": np.arange(1, n_chains + 1), "draw": np.arange(1, n_draws + 1)},
        attrs={
            "inference_library": "glfm",
            "inference_library_version": __version__,
            "model": model,
            "seed": seed,
        },
    )
