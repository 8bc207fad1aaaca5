"""Latent models by name; adding one is a file here and a line in the table."""

from __future__ import annotations

from glfm_cli.latent.bsvd import Bsvd
from glfm_cli.latent.glfm import Glfm
from glfm_cli.latent.iqgme.mixture import Iqgme
from glfm_cli.latent.latent import LatentModel

MODELS: dict[str, LatentModel] = {"glfm": Glfm(), "bsvd": Bsvd(), "iqgme": Iqgme()}
