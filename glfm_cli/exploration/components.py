"""What the draws of a model with components say: rank, components, effects of covariates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import glfm_cli.exploration.lowrank as lowrank
from glfm_cli.completion import MatrixData
from glfm_cli.encoding import Data, Ids
from glfm_cli.exploration.component_result import OF_SCORES, ComponentExploration
from glfm_cli.exploration.goes_with import Support
from glfm_cli.exploration.job import ExplorationJob
from glfm_cli.exploration.latent_columns import latent_columns
from glfm_cli.exploration.request import Request
from glfm_cli.exploration.shared import SharedByRows, shared_by_rows
from glfm_cli.inference.sampling import Run


def describe_components(run: Run, job: ExplorationJob, request: Request) -> ComponentExploration:
    """Return what the draws of a run say of the structure of a table, or of a matrix."""
    posterior, data, model = run.posterior, job.data, lowrank.component_model(run.posterior.model)
    draws = [model.parts(draw.latent) for draw in posterior.draws()]
    direction = None
    notes: tuple[str, ...] = ()
    covariates: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    support = None
    shared: SharedByRows | None = None
    if isinstance(data, Data):
        columns, direction = latent_columns(data.columns, posterior.links)
        number = pa.chunked_array([np.arange(1, data.n_rows + 1)])
        rows = pa.table({**{name: job.ids[name] for name in job.ids.column_names}, "row": number})
        shared = shared_by_rows(posterior, data)
        notes = data.notes if job.session is not None else ()
        notes = (*notes, *(shared.cautions if shared is not None else ()))
    else:
        rows, columns = _named_ids(data.rows, "row"), _named_ids(data.others, "column")
        covariates, support = data.names, _support(data)
        rows, columns = (
            ids.append_column("cells", pa.array(known.cells))
            for ids, known in zip((rows, columns), support, strict=True)
        )
    variance = tuple(lowrank.variance(posterior, draws, job.bias)) if direction is None else ()
    explained = () if direction is None else tuple(lowrank.explained(posterior, draws))
    low_rank = lowrank.low_rank(posterior)
    components = lowrank.components(low_rank, request.top, direction, support)
    return ComponentExploration(
        rows=rows,
        columns=columns,
        ranks=tuple(lowrank.ranks(posterior)),
        components=tuple(component for component in components if component.sure),
        top=request.top,
        variance=variance,
        explained=explained,
        effects=tuple(lowrank.effects(draws, covariates, job.bias)),
        shared=shared,
        **job.of_run(run, request, ("top",), notes),
    )  # fmt: skip


def _support(data: MatrixData) -> tuple[Support, Support]:
    """Return what is known of rows and of columns: their numbers of cells, and covariates."""
    triplets = data.triplets
    found = []
    for index, ids, covariates, names in zip(
        (triplets.row, triplets.column), (data.rows, data.others), data.covariates, data.names,
        strict=True,
    ):  # fmt: skip
        cells = np.bincount(index, minlength=len(ids))
        covariates = np.empty((len(ids), 0)) if covariates is None else covariates
        found.append(Support(cells, covariates, names))
    return found[0], found[1]


def _named_ids(ids: Ids, side: str) -> pa.Table:
    """Return the ids, and their labels where they have some; `side` names ids where that is taken.
    """
    labels = {"label": pa.array(ids.labels, pa.string())} if ids.labels else {}
    taken = ids.name in (*OF_SCORES, "label", "cells")
    return pa.table({side if taken else ids.name: ids.values} | labels)
