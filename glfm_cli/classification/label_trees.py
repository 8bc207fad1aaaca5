"""Trees of the label, which predict beside the mixture of experts.

Experts are few and each rule is a line: where labels follow thresholds and interactions of many
features, trees are better. A node asks about few features, each at several thresholds at random,
between forests [Breiman 2001] and extra trees [Geurts and others 2006]. Both, experts and trees,
foretell labels that they have not seen, experts by answering scores (`left_out_labels`), trees by
those grown without the row, and mix as these say (`label_mixing`).

Trees see features as experts do, and missing cells as these expect them: a value of its own would
tell trees which cells are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.label_mixing import LabelMixing
from glfm_cli.latent.forest import ForestConfig
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.trees import Trees, grow, law
from glfm_cli.latent.iqgme import Member
from glfm_cli.latent.model import take
from glfm_cli.links.law import Probabilities

FEWEST = 30  # labels by which weights are chosen
TREES, LEFT_OUT = 100, 33  # of them a row is left out of so many
LEAST = 2  # members of a leaf, at least
THRESHOLDS = 10  # of each of the sqrt(P) features that a node asks about
PRIOR = 0.1  # members of a leaf that all labels together are worth


@dataclass(frozen=True, eq=False)
class LabelTrees:
    """Trees of a label of R levels on P features, and how much they count.

    trees : of column P, behind the features
    code : (n,) int32, the labels of the rows that trees were grown on
    n_features : P;  n_levels : R
    mixing : how they mix with experts
    """

    trees: Trees
    code: Array
    n_features: int
    n_levels: int
    mixing: LabelMixing

    @classmethod
    def of(
        cls,
        x: Array,
        code: Array,
        n_levels: int,
        members: Sequence[Member],
        rng: np.random.Generator,
    ) -> Self:
        """Return trees of labelled rows, weighed beside experts.

        x : (n, P) features;  code : (n,) which level each label is
        members : the fits of experts that predict together
        """
        n, P = x.shape
        z = _cells(x, code)
        seen, least = np.ones(z.shape, dtype=np.uint8), np.full(P + 1, LEAST, dtype=np.int64)
        how = ForestConfig(questions=max(round(P**0.5), 1), thresholds=THRESHOLDS)
        kinds = _kinds(P, n_levels)
        trees = grow(z, seen, kinds, [P], TREES, LEFT_OUT, least, how, rng)
        own, rows = code.astype(np.int32), np.arange(n, dtype=np.int32)
        p = _forecasts(trees, own, n_levels, x, rows)[rows, own]
        return cls(trees, own, P, n_levels, LabelMixing.of(members, np.log(p), own))

    def mixed(self, p: Array, x: Array) -> Array:
        """Return the mixture (n, R) with the probabilities that experts gave to rows x (n, P)."""
        new = np.full(len(x), -1, dtype=np.int32)
        return self.mixing.mixed(p, _forecasts(self.trees, self.code, self.n_levels, x, new))

    def pack(self) -> dict[str, Array]:
        """Return them as named arrays."""
        own = {"code": self.code, **self.mixing.pack()}
        return own | {f"trees.{name}": array for name, array in self.trees.pack().items()}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], n_features: int, n_levels: int) -> Self:
        """Return what `pack` gave; ValueError, with a phrase, when it is no such thing."""
        code = take(arrays, "code", np.int32, (None,))
        if not code.size or code.min() < 0 or code.max() >= n_levels:
            raise ValueError("'code' is out of range")
        mixing = LabelMixing.unpack(arrays, n_levels)
        part = {k.removeprefix("trees."): v for k, v in arrays.items() if k.startswith("trees.")}
        trees = Trees.unpack(part, 1, code.size, features=n_features)
        return cls(trees, code, n_features, n_levels, mixing)


def _forecasts(trees: Trees, code: Array, n_levels: int, x: Array, own: Array) -> Array:
    """Return probabilities (n, R); `own` (n,) is the row of the fit that each is, or -1."""
    P = x.shape[1]
    z = _cells(x, np.zeros(len(x)))
    kinds, donors = _kinds(P, n_levels), code.astype(np.float64)
    found = law(z, np.arange(len(x)), own, donors, kinds, P, trees, 0, PRIOR)
    assert isinstance(found, Probabilities)
    return found.p


def _cells(x: Array, code: Array) -> Array:
    """Return features, in single precision as trees ask about them, and labels (P + 1, n)."""
    return np.vstack([np.ascontiguousarray(x.T, dtype=np.float32), code], dtype=np.float64)


def _kinds(n_features: int, n_levels: int) -> Kinds:
    """Return what features, all numbers, and the label are to trees."""
    D = n_features + 1
    label = np.arange(D) == n_features
    levels = np.where(label, n_levels, 0).astype(np.int32)
    return Kinds(levels, label.astype(np.uint8), np.full(D, np.nan), np.zeros(D))
