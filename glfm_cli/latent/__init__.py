"""Latent models by name; adding one is a file here and a line in the table."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

from glfm_cli.latent.model import LatentModel

# What is no model of tables: why not, and what to take.
ELSEWHERE = {
    "iqgme": (
        "predicts a label, and of the other columns it knows what --model mixture does",
        "Use --model mixture, or `glfm classify ... --target COLUMN --complete FILE`.",
    )
}
CANDIDATES = ("glfm", "mixture", "bsvd", "forest")  # of `auto`, besides one that is none alone


class _Models(MutableMapping[str, LatentModel]):
    """Models by name, each imported and made when it is first asked for."""

    def __init__(self, classes: dict[str, str]) -> None:
        self._known: dict[str, Any] = dict(classes)

    def __getitem__(self, name: str) -> LatentModel:
        found = self._known[name]
        if isinstance(found, str):
            module, _, kind = found.partition(":")
            made = getattr(import_module(module), kind)
            if name == "auto":
                linear = import_module("glfm_cli.latent.glfm").LinearGlfm()
                found = made({one: self[one] for one in CANDIDATES} | {"linear": linear})
            else:
                found = made()
            self._known[name] = found
        return found

    def __setitem__(self, name: str, model: LatentModel) -> None:
        self._known[name] = model

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


MODELS = _Models(
    {
        "auto": "glfm_cli.latent.auto:Auto",
        "glfm": "glfm_cli.latent.glfm:Glfm",
        "bsvd": "glfm_cli.latent.bsvd:Bsvd",
        "mixture": "glfm_cli.latent.mixture:Mixture",
        "clgp": "glfm_cli.latent.clgp:Clgp",
        "cnpf": "glfm_cli.latent.cnpf:Cnpf",
        "forest": "glfm_cli.latent.forest:Forest",
    }
)
