"""A latent Gaussian process for tables of all column types (CLGP), fitted by variational inference.

Every row has a place x in a space of few dimensions, every latent number of a column is a smooth
function of the place, and a cell is seen through its column's kind: softmax of levels, as in the
source, thresholds of ordered levels, a Gaussian margin of numbers, or an interval of it.  [CLGP]

    N rows, D columns, S latent numbers a row, Q dimensions, M inducing places, P = Q + M features
    x_n ~ N(0, I_Q)
    f_s(x) = b_s + a_s h_s(x),  h_s ~ GP(0, k),  k(x, x') = rho x.x' + exp(-|(x - x') / ell|^2 / 2)
    h_s(x) | e_s ~ N(psi(x)'e_s, r(x)),  e_s ~ N(0, I_P)
    q(x_n) = N(m_n, diag(sd_n^2)),  q(e_s) = N(mu_s, V diag(c_s^2) V')

Departures from the source: functions share one kernel, with amplitudes and intercepts of their own,
so that one factorisation serves all of them; the inducing variables are whitened; f is integrated
by quadrature, or in closed form, where the source samples it; q(e) takes Newton's steps instead of
gradient steps. Lengths, amplitudes, noise and thresholds are points.

[CLGP] Y. Gal, Y. Chen and Z. Ghahramani, "Latent Gaussian processes for distribution estimation of
multivariate categorical data", ICML 2015.

table.py        what a table is to the model
config.py, parameters.py    settings; what rows share, and where rows lie
features.py     kernel, inducing places, features, and the way back through them
likelihoods.py  E log p(cell | f) by kind
blocks.py       blocks of rows and their normals
bound.py        the bound and its gradient
weights.py      the update of q(e);  adam.py   steps of all else;  ascent.py   an iteration of both
starts.py       where an ascent starts
spreads.py      covariances of places at the end of an ascent
draws.py        what is kept of a restart, and samples of what rows share
new_rows.py     where new rows lie;  relevance.py   which dimensions count
engine.py       all of it behind one class
laws.py         the law of cells
columns.py      from a table's columns to what the model sees;  model.py    what a driver calls
"""

from __future__ import annotations

from glfm_cli.latent.clgp.ascent import ClgpState
from glfm_cli.latent.clgp.config import ClgpConfig
from glfm_cli.latent.clgp.draws import ClgpDraw
from glfm_cli.latent.clgp.model import Clgp
from glfm_cli.latent.clgp.relevance import relevances
from glfm_cli.latent.clgp.table import ColumnKind, ObservedTable, Slots

__all__ = [
    "Clgp",
    "ClgpConfig",
    "ClgpDraw",
    "ClgpState",
    "ColumnKind",
    "ObservedTable",
    "Slots",
    "relevances",
]
