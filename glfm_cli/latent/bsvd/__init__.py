"""BSVD, the Bayesian low-rank model, behind the `LatentModel` protocol."""

from glfm_cli.latent.bsvd.sampler import Bsvd
