"""A saved fit as it is loaded: every part of it checked, the draws left on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from glfm_cli.encoding import Data
from glfm_cli.encoding.number_style import NumberStyle
from glfm_cli.errors import StoreError
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.lone_cells import of_rows
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.sampling import Plan
from glfm_cli.latent.model import LatentModel
from glfm_cli.links import Link, LinkConfig
from glfm_cli.schema import Column, Schema
from glfm_cli.schema.moments import MomentStyle
from glfm_cli.store.content import read_data, read_links
from glfm_cli.store.folder import HEADER, check_folder
from glfm_cli.store.header import Header, read_header
from glfm_cli.store.log import Extent, Layout, read_draws, read_state
from glfm_cli.store.matrix import StoredMatrix, read_matrix


@dataclass(frozen=True, repr=False)
class Fit:
    """A saved fit, loaded: everything that a task needs, with or without the table.

    Attributes
    ----------
    path : Path
        Its folder.
    schema : Schema
        The types as they were given, patterns included.
    columns : tuple of Column
        The D modelled columns in the table's order, names and types resolved.
    levels : tuple of tuple of str
        Per modelled column its levels by code, learnt ones included; empty for numbers.
    links : tuple of Link
        Per modelled column, with the constants that the draws belong to.
    posterior : Posterior
        The draws of the chains that count. Their arrays are read-only and stay on disk until
        they are used, so that a fit takes little memory.
    data : Data or None
        The encoded table; None when it was left out by `--no-data`, and of a fit of triplets.
    matrix : StoredMatrix or None
        Ids, cells and covariates of a fit of triplets; None of a table's.
    n_rows : int
        Rows of the fitted table, or of the matrix.
    plan : Plan
        Chains, warm-up, draws, thinning and seed.
    model, config, link_config
        The latent model, its configuration and that of the links.
    extents : tuple of Extent
        Per chain of the plan, the sweeps and draws it has made.
    header : Header
        All that run.json says: versions, hashes, seconds.
    notes : tuple of str
        What a user should know, one line each: chains that do not count, a run cut short.
    """

    path: Path
    header: Header
    columns: tuple[Column, ...]
    links: tuple[Link, ...]
    posterior: Posterior
    data: Data | None
    extents: tuple[Extent, ...]
    notes: tuple[str, ...]
    matrix: StoredMatrix | None = None

    def __repr__(self) -> str:
        """Return what it is of; the fields hold the table and all draws."""
        chains = f"{len(self.posterior.chains)} chains of {self.model.name}"
        return f"<Fit {self.path}: {self.n_rows} rows, {chains}>"

    @property
    def schema(self) -> Schema:
        return self.header.schema

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        return tuple(column.levels for column in self.header.modelled)

    @property
    def styles(self) -> tuple[NumberStyle | MomentStyle | None, ...]:
        """How the numbers of each modelled column were written; None where that is not known."""
        return tuple(column.style for column in self.header.modelled)

    @property
    def n_rows(self) -> int:
        return self.header.n_rows

    @property
    def plan(self) -> Plan:
        return self.header.plan

    @property
    def seed(self) -> int:
        return self.header.plan.seed

    @property
    def model(self) -> LatentModel:
        return self.header.latent

    @property
    def config(self) -> Any:
        return self.header.model_config

    @property
    def link_config(self) -> LinkConfig:
        return self.header.link_config


def load_fit(path: str | os.PathLike[str]) -> Fit:
    """Return a saved fit, every part of it checked before it is trusted.

    Parameters
    ----------
    path : path
        The folder `NAME.glfm` that `save=` or `--save` wrote. It may be of a run that was cut
        short: the draws up to its last checkpoint are there.

    Raises
    ------
    StoreError
        It is no saved fit, is broken, or was written by a newer version; or no draw was kept
        before the run was cut short.
    """
    folder = Path(path)
    check_folder(folder)
    header = read_header(folder)
    if header.classifier is not None:
        raise StoreError(
            "is a classifier, which `glfm classify --fit` applies", file=str(folder / HEADER)
        )
    columns = header.columns()
    links = read_links(folder, header, columns)
    layout = Layout.of(header, links)
    found = [read_state(folder, index) for index in range(header.plan.chains)]
    extents = tuple(Extent() if one is None else one[0] for one in found)
    del found
    chains = [read_draws(folder, i, extent, layout) for i, extent in enumerate(extents)]
    kept = tuple(chain for chain in chains if chain)
    if not kept:
        most = max(extent.sweeps for extent in extents)
        raise StoreError(
            f"no draw was saved before the run ended: it had made {most} of its "
            f"{header.plan.warmup} warm-up sweeps",
            file=str(folder),
            hint=f"Continue with `glfm impute ... --resume {quote(str(folder))}`.",
        )
    posterior, data = _posterior(header, links, kept, folder), None
    if header.has_data and not header.matrix:
        data = read_data(folder, header, columns)
        posterior = of_rows(posterior, data.groups, data.seen)
    return Fit(
        path=folder,
        header=header,
        columns=columns,
        links=links,
        posterior=posterior,
        data=data,
        matrix=None
        if header.matrix is None
        else read_matrix(folder, header.matrix, header.n_rows, header.has_data),
        extents=extents,
        notes=_notes(header, extents),
    )


def _posterior(
    header: Header, links: tuple[Link, ...], chains: tuple[tuple[Draw, ...], ...], folder: Path
) -> Posterior:
    if header.latent.kind == "gibbs":
        return Posterior(header.latent, links, spans_of(links), chains, header.recalibration)
    try:
        return Posterior.of_restarts(header.latent, links, spans_of(links), chains)
    except (ValueError, KeyError) as error:
        raise StoreError(
            f"cannot be used: {error}",
            file=str(folder),
            hint=f"Continue with `glfm impute ... --resume {quote(str(folder))}`.",
        ) from None


def _notes(header: Header, extents: Sequence[Extent]) -> tuple[str, ...]:
    plan, notes = header.plan, []
    if header.latent.kind == "ascent":
        return ()
    kept = sum(extent.draws > 0 for extent in extents)
    if kept < len(extents):
        notes.append(f"only {kept} of {len(extents)} chains kept draws; only they count")
    done = sum(min(extent.sweeps, plan.sweeps) for extent in extents)
    if done < plan.chains * plan.sweeps:
        notes.append(f"the run was cut short after {done} of {plan.chains * plan.sweeps} sweeps")
    return tuple(notes)
