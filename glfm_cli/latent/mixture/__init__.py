"""A Dirichlet-process mixture of normals, behind the `LatentModel` protocol."""

from glfm_cli.latent.mixture.sampler import Mixture
