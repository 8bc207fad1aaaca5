"""Correlated Poisson factorization of a matrix of counts, by coordinate ascent.

    y_ui ~ Poisson(sum_k x_uk a_ki)      a_ki ~ Gamma(ah, bh)        w_k ~ Gamma(alpha / T, c)
    x_uk ~ Gamma(w_k, r_uk)              l_k ~ N(0, sl2 I)           c ~ Gamma(a_c, b_c)
    r = exp(-G) or 1 / log(1 + exp G)    G_uk = d_u . l_k + mu_u     v_u = [d_u, mu_u] ~ N(0, P^-1)

    u, i, k  row, column, component;  U, I, T of them;  D coordinates of a location
    lt       [l, 1], of the F free coordinates of v: all; mu alone without correlations (scaled
             hierarchical gamma process); none without a scale (hierarchical gamma process)
    q        Gamma(w + n, rho + S) of x, Gamma(A, B) of a, N(m, cov) of v; shares of the counts;
             points for l, and for the logarithms of w and c
    n        (U, T) counts of rows by component;  S  exposures, sum_i E a_ki;  rho  E r
    g, eta   with `likelihood=topics`, DILN: words given their number, a_k a distribution over
             columns ~ Dirichlet(eta); g_u = N_u / sum_k E x_uk takes the place of S

[CRM] R. Ranganath and D. Blei, "Correlated random measures", JASA 113, 2018.
[DILN] J. Paisley, C. Wang and D. Blei, Bayesian Analysis 7, 2012.
Departures: finitely many weights of mass alpha / T in place of sticks, whose maximum is unbounded;
a Gaussian q of v in place of a point, in closed form under the exp link; rates are those of the
prior in q(x); columns start near the unigram and rows sparse, as flat starts end at the unigram;
components alike may be merged where that raises the bound.

A pass costs O(T (cells + U D^2 + I)). Memory: 24 bytes a cell, 24 T + 4 F^2 a row, 40 T a column.
"""

from __future__ import annotations

from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.draw import CnpfDraw
from glfm_cli.latent.cnpf.model import Cnpf
from glfm_cli.latent.cnpf.state import CnpfState

__all__ = ["Cnpf", "CnpfConfig", "CnpfDraw", "CnpfState", "Counts"]
