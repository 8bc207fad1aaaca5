"""The infinite quadratically gated mixture of experts (iQGME), fitted by variational inference.

Rows fall into experts. Expert h says where its rows lie, x ~ N(mu_h, Lam_h^-1), and how their
label depends on where they are, by a probit with weights w_h. Which expert is responsible for a row
is thereby a quadratic function of x, and the label a nonlinear one. Missing features are
integrated out under each expert, together with the label.  [iQGME chapter 3]

    n rows, P features, K latent label columns, H experts
    z_n ~ sticks(alpha);  x_n | z = h ~ N(mu_h, Lam_h^-1);  t_n | z = h ~ N(w_h [x_n, 1], I_K)
    (mu, Lam)_h normal-Wishart;  w_hkp ~ N(zeta_kp, 1 / lam_p);  (zeta, lam)_p normal-gamma

A label is a column of levels, seen through its link with t as the pseudo-observations; so is a
feature of levels, with x plus unit noise. The approximation keeps everything that
belongs to a row together with its expert:

    q = prod_n q(z_n) q(x_n missing, t_n | z_n) q(y_n | z_n)
        prod_h q(V_h) q(mu_h, Lam_h) q(w_h)  prod_p q(zeta_p, lam_p)  q(alpha)

where x_n missing and t_n are apart, given z_n, for a label of more than two levels.

model.py     the models that the driver runs: an ascent of one table or many tasks, and a sampler
level_data.py     what levels say of normal variables, by the link of their column
rows.py      what a table is to the model: rows grouped by which features are known
prior.py     configuration and prior
coefficients.py   sticks and coefficients of labels, which all forms of experts have
experts.py   q of everything that rows share; its updates and its part of the bound
local.py     q of the rows given the experts, and the statistics that the updates need;
seen_law.py  features seen with noise
whole_rows.py   rows without gaps, in products of two matrices
factors.py   the same for experts of many features, whose covariances are of low rank;
factor_rows.py, loadings.py   their rows, and where they start
forms.py     the two forms of experts, as fits see them
ascent.py    iterations of a start, and moves to fewer experts;  merges.py  which two could be one
fit.py       starts, and by what weights they predict together;  acceleration.py  of coefficients
gates.py, factor_gates.py     new rows: which expert, which label, which missing features
left_out_labels.py, label_responses.py   labels of the fit, were they not known
laws.py      the same, whichever the form is
gibbs_draw.py   the experts as the Gibbs sampler draws them;  gibbs.py    its sweep
usage.py     many tasks: which of the shared experts each uses
deviations.py, deviation_scale.py   what the coefficients of tasks are off by
tasks.py     many tasks: starts and iterations
packing.py   all of it as named arrays, and back, checked
"""

from __future__ import annotations

from glfm_cli.latent.iqgme.deviations import TaskDeviations
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.factor_gates import LowRank
from glfm_cli.latent.iqgme.factors import FactorExperts
from glfm_cli.latent.iqgme.fit import ROUGH, Member
from glfm_cli.latent.iqgme.gates import LabelLaw
from glfm_cli.latent.iqgme.gibbs_draw import Drawn
from glfm_cli.latent.iqgme.laws import label_law
from glfm_cli.latent.iqgme.level_data import LevelData
from glfm_cli.latent.iqgme.model import ExpertAscent, ExpertSampler, TaskTables, experts_model
from glfm_cli.latent.iqgme.prior import MOST_BOTH, IqgmeConfig, factors_for, what_forms
from glfm_cli.latent.iqgme.rows import KnownRows
from glfm_cli.latent.iqgme.usage import Usage

__all__ = [
    "MOST_BOTH",
    "ROUGH",
    "Drawn",
    "ExpertAscent",
    "ExpertSampler",
    "Experts",
    "FactorExperts",
    "IqgmeConfig",
    "KnownRows",
    "LabelLaw",
    "LevelData",
    "LowRank",
    "Member",
    "TaskDeviations",
    "TaskTables",
    "Usage",
    "experts_model",
    "factors_for",
    "label_law",
    "what_forms",
]
