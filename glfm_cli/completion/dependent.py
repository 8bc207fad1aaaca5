"""What is known of the cells of columns that depend on columns, by joint draws that obey this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data, Relations, bounds_of, settle
from glfm_cli.inference.equations import Equations
from glfm_cli.inference.joint_draws import JointDraws
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.predictive import Marginal

SAMPLES = 200


class TableDraws:
    """Joint draws of all missing cells of a table that obey what the types file says of them."""

    def __init__(self, posterior: Posterior, data: Data) -> None:
        self.data = data
        less = Relations.of(data.columns).less
        equations = Equations(data.columns, posterior.links)
        self.joint = JointDraws(posterior, data.missing, bounds_of(data), less, equations)

    def draw(self, rng: np.random.Generator, draw: Draw | None = None) -> dict[int, Array]:
        """Return one value or level code a cell, NaN where it is to have none."""
        return settle(self.data, self.joint.draw(rng, draw))


def settled_marginals(
    posterior: Posterior, data: Data, marginals: Mapping[int, Marginal], at: Sequence[float]
) -> dict[int, Marginal]:
    """Return the marginals of the columns of formulas, from draws in which these hold.

    data : with what follows from known cells
    marginals : of all missing cells, each column by itself
    at : probabilities of the first quantiles
    """
    of = [d for d in sorted(Relations.of(data.columns).numbers) if d in marginals]
    if not of:
        return {}
    rng = np.random.default_rng(0)
    table = TableDraws(posterior, data)
    draws = [table.draw(rng) for _ in range(SAMPLES)]
    found = {}
    for d in of:
        x = np.array([draw[d] for draw in draws])
        quantiles = marginals[d].quantiles.copy()
        with np.errstate(invalid="ignore"):
            # By ranks over n + 1, between which another draw lies with the probability they say.
            found_at = np.nanquantile(x, np.array(at), axis=0, method="weibull")
            quantiles[:, : len(at)] = found_at.T
            mean, sd = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
        found[d] = replace(marginals[d], mean=mean, sd=sd, quantiles=quantiles)
    return found
