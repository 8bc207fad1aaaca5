"""GLFM, the general latent feature model, behind the `LatentModel` protocol."""

from glfm_cli.latent.glfm.sampler import Glfm, LinearGlfm
