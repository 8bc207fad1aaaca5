"""The law of labels and features of rows under experts of either form."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.factor_gates import factor_law
from glfm_cli.latent.iqgme.factors import FactorExperts
from glfm_cli.latent.iqgme.gates import LabelLaw, full_law
from glfm_cli.latent.iqgme.gibbs_draw import Drawn
from glfm_cli.latent.iqgme.local import sound
from glfm_cli.latent.iqgme.rows import KnownRows


def label_law(
    rows: KnownRows,
    q: Experts | FactorExperts | Drawn,
    *,
    pi: Array | None = None,
    features: bool = False,
    pool: ThreadPoolExecutor | None = None,
) -> LabelLaw:
    """Return the law of the labels of rows, nothing being known of them.

    rows : labels, where there are any, are not looked at
    q : Experts, FactorExperts or Drawn
    pi : (H, n) float64, optional; shares of the experts in what each row is one of; E[pi] if left
        out
    features : whether the law of the features is wanted, too
    pool : works on batches of rows
    """
    with sound():
        if isinstance(q, FactorExperts):
            return factor_law(rows, q, pi=pi, features=features, pool=pool)
        return full_law(rows, q, pi=pi, features=features, pool=pool)
