"""The constants of every kind of link, out and in again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.encoding import encode
from glfm_cli.links import Link, LinkConfig, link_from, make_link
from glfm_cli.links.law import normal
from glfm_cli.schema import Schema

POSITIVE = [0.5, 1.25, None, 3.0, 9.5, 0.75, 30.0]
COUNTS = [0, 1, None, 4, 2, 2, 90]
COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "real": ("real", [-1.5, 0.25, None, 3.0]),
    "rank": ({"type": "real", "transform": "rank"}, POSITIVE),
    "bounded": ({"type": "real", "bounds": [0, 100]}, POSITIVE),
    "constant": ("real", [2.0, 2.0, None]),
    "positive": ({"type": "positive", "transform": "none"}, POSITIVE),
    "skewed": ("positive", POSITIVE),
    "zeros": ("positive", [0.0, *POSITIVE]),
    "log": ({"type": "positive", "transform": "log"}, POSITIVE),
    "reflected": ({"type": "positive", "transform": "log", "reflect": 50}, POSITIVE),
    "sqrt": ({"type": "positive", "transform": "sqrt"}, POSITIVE),
    "logit": ({"type": "real", "transform": "logit", "bounds": [0, 40]}, POSITIVE),
    "count": ({"type": "count", "transform": "none"}, COUNTS),
    "skewed_count": ("count", COUNTS),
    "log1p": ({"type": "count", "transform": "log1p"}, COUNTS),
    "categorical": ("categorical", ["b", "a", None, "c", "b"]),
    "single": ("categorical", ["only", None]),
    "ordinal": ({"type": "ordinal", "levels": ["low", "mid", "high"]}, ["mid", None, "low"]),
}


def linked(name: str) -> tuple[Link, Any]:
    said, values = COLUMNS[name]
    data = encode(pa.table({name: values}), Schema.from_dict({"columns": {name: said}}))
    return make_link(data.columns[0], LinkConfig()), data.columns[0]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_link_is_the_same_after_its_constants_went_out_and_in(name: str) -> None:
    link, encoded = linked(name)
    again = link_from(encoded.column, len(encoded.levels), link.constants(), LinkConfig())
    assert type(again) is type(link)
    assert (again.known, again.n_latent, again.name) == (link.known, link.n_latent, link.name)
    x = encoded.x
    params, y = link.start(x)
    other, z = again.start(x)
    np.testing.assert_array_equal(y, z)
    again.check_params(other)
    eta = np.linspace(-2, 2, x.size)[:, None] * np.ones(max(link.n_latent, 1))
    eta = eta[:, 0] if link.n_latent == 1 else eta[:, : link.n_latent]
    seen = ~np.isnan(x)
    for draw in ("log_density", "sample"):
        if draw == "log_density":
            law = normal(eta[seen], 1.0)
            found = [one.log_density(x[seen], law, params) for one in (link, again)]
        else:
            law = normal(eta, 1.0)
            found = [one.sample(law, params, np.random.default_rng(2)) for one in (link, again)]
        np.testing.assert_array_equal(*found)
    if not link.discrete:
        moments = [one.moments(eta, 1.0, params) for one in (link, again)]  # type: ignore[attr-defined]
        np.testing.assert_array_equal(*moments)


def changes(constants: dict[str, Any]) -> list[dict[str, Any]]:
    """Return constants spoilt in every way that a file could be."""
    spoilt: list[dict[str, Any]] = []
    for name, value in constants.items():
        # Without it there is another margin, or one with no such end, each as good as any.
        if name not in {"reflected", "reach"}:
            spoilt.append({k: v for k, v in constants.items() if k != name})
        if value.size:
            spoilt.append({**constants, name: np.full_like(value, np.nan)})
        spoilt.append({**constants, name: np.zeros((2, 2))})
        spoilt.append({**constants, name: np.zeros(value.shape, dtype=np.int64)})
    return spoilt


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "ordinal"])
def test_spoilt_constants_are_refused(name: str) -> None:
    link, encoded = linked(name)
    for constants in changes(link.constants()):
        with pytest.raises(ValueError):
            link_from(encoded.column, len(encoded.levels), constants, LinkConfig())


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        ("bounded", "latent_bounds", [np.inf, np.inf]),
        ("bounded", "latent_bounds", [-np.inf, -np.inf]),
        ("count", "cuts", [-np.inf, -1e300, 0.0]),
        ("count", "cuts", [-1.0, -np.inf, 0.0]),
    ],
)
def test_ends_that_no_calibration_gives_are_refused(
    kind: str, name: str, values: list[float]
) -> None:
    link, encoded = linked(kind)
    constants = {**link.constants(), name: np.array(values)}
    with pytest.raises(ValueError, match=name):
        link_from(encoded.column, 0, constants, LinkConfig())


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"thresholds": np.array([0.0, 0.0])},
        {"thresholds": np.array([0.0, np.nan]), "log_step": np.zeros(1), "tries": np.zeros(1)},
        {"thresholds": np.zeros(1), "log_step": np.zeros(1), "tries": np.zeros(1)},
        {"thresholds": np.array([1.0, 0.0]), "log_step": np.zeros(1), "tries": np.zeros(1)},
        {"thresholds": np.array([0.0, 1e300]), "log_step": np.zeros(1), "tries": np.zeros(1)},
        {"thresholds": np.array([0.0, 1.0]), "log_step": np.full(1, 1e9), "tries": np.zeros(1)},
        {
            "thresholds": np.array([0.0, 1.0]),
            "log_step": np.zeros(1),
            "tries": np.zeros(1),
            "more": np.zeros(1),
        },
    ],
)
def test_spoilt_thresholds_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        linked("ordinal")[0].check_params(params)
