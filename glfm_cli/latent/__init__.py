"""Latent models by name; adding one is a file here and a line in the table."""

from __future__ import annotations

from glfm_cli.latent.auto import Auto
from glfm_cli.latent.bsvd import Bsvd
from glfm_cli.latent.clgp import Clgp
from glfm_cli.latent.cnpf import Cnpf
from glfm_cli.latent.forest import Forest
from glfm_cli.latent.glfm import Glfm
from glfm_cli.latent.mixture import Mixture
from glfm_cli.latent.model import LatentModel

# What is no model of tables: why not, and what to take.
ELSEWHERE = {
    "iqgme": (
        "predicts a label, and of the other columns it knows what --model mixture does",
        "Take --model mixture, or `glfm classify ... --target COLUMN --complete FILE`.",
    )
}
_GLFM, _BSVD, _MIXTURE = Glfm(), Bsvd(), Mixture()
MODELS: dict[str, LatentModel] = {
    "glfm": _GLFM,
    "bsvd": _BSVD,
    "mixture": _MIXTURE,
    "clgp": Clgp(),
    "cnpf": Cnpf(),
    "forest": Forest(),
    "auto": Auto({"glfm": _GLFM, "mixture": _MIXTURE, "bsvd": _BSVD}),
}
