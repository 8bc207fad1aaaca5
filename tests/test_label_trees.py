"""Trees that predict labels beside the mixture of experts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import classify
from glfm_cli.classification.label_mixing import LabelMixing
from glfm_cli.classification.label_trees import LabelTrees
from glfm_cli.classification.saved import load_trained

Array = np.ndarray[Any, Any]

TYPES = {"columns": {"a": "real", "b": "real", "c": "real", "label": "categorical"}}


def squares(n: int, seed: int, *, straight: bool = False) -> pa.Table:
    """Return rows whose label goes by the square of a plane that they are in, or by a line."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, (n, 3))
    score = x @ [2.0, -1.0, 0.5] if straight else np.floor(x[:, 0]) + np.floor(x[:, 1])
    one = score + rng.logistic(size=n) > 0.0 if straight else score % 2 == 0
    columns = {name: pa.array(x[:, d], mask=rng.random(n) < 0.05) for d, name in enumerate("abc")}
    return pa.table(columns | {"label": pa.array(np.where(one, "yes", "no"))})


def log_loss(p: Array, table: pa.Table) -> float:
    code = (table["label"].to_numpy() == "yes").astype(int)
    return float(-np.log(np.maximum(p[np.arange(code.size), code], 1e-15)).mean())


def test_labels_by_thresholds_are_foretold_by_trees_and_by_a_line_by_experts(seed: int) -> None:
    for straight in (False, True):
        train, new = (squares(n, seed + n, straight=straight) for n in (400, 600))
        options = {"types": TYPES, "target": "label", "predict": new, "chains": 2, "seed": 0}
        one = {"experts": 1}  # many may find the squares
        found = classify(train, **options, settings=one)
        alone = classify(train, **options, settings={**one, "stack": "false"})
        assert found.trained is not None
        trees = found.trained.classifier.trees
        assert trees is not None
        assert alone.trained is not None
        assert alone.trained.classifier.trees is None
        both, experts = (log_loss(one.predictions.p, new) for one in (found, alone))
        if straight:
            assert trees.mixing.weights[1] < 0.35
            assert both < experts + 0.01
        else:
            assert trees.mixing.weights[1] > 0.7
            assert both < 0.85 * experts


def test_kept_trees_predict_the_same(tmp_path: Path, seed: int) -> None:
    train, new = squares(200, seed), squares(50, seed + 1)
    folder = tmp_path / "fit.glfm"
    found = classify(
        train, TYPES, target="label", predict=new, chains=1, seed=0, save=folder
    ).predictions
    again = classify(new, fit=folder).predictions
    np.testing.assert_array_equal(found.p, again.p)
    each = [classify(new.slice(i, 1), fit=folder).predictions.p[0] for i in range(5)]
    np.testing.assert_allclose(each, found.p[:5], rtol=1e-12)
    trees = load_trained(folder).classifier.trees
    assert trees is not None
    packed = trees.pack()
    whole = LabelTrees.unpack(packed, 3, 2)
    np.testing.assert_array_equal(whole.mixing.weights, trees.mixing.weights)
    broken = {
        "weights": 2.0 * packed["weights"],
        "code": np.where(packed["code"] == 1, 2, packed["code"]).astype(np.int32),
        "trees.feature": np.where(packed["trees.feature"] == 2, 3, packed["trees.feature"]),
    }
    for name, value in broken.items():
        with pytest.raises(ValueError, match=name.removeprefix("trees.")):
            LabelTrees.unpack({**packed, name: value.astype(packed[name].dtype)}, 3, 2)


def test_trees_see_missing_features_as_experts_expect_them(seed: int) -> None:
    """And are weighed beside the starts that predict together, by the weights of these."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(300)
    b = a + 0.1 * rng.standard_normal(300)
    hidden = rng.random(300) < 0.3
    columns = {"a": a, "b": pa.array(b, mask=hidden), "c": rng.standard_normal(300)}
    train = pa.table(columns | {"label": np.where(np.floor(2.0 * a) % 2 == 0, "yes", "no")})
    found = classify(train, TYPES, target="label", predict=train, chains=6, seed=0)
    assert found.trained is not None
    made = found.trained.classifier
    cells = [train[name].to_numpy() for name in made.seen.columns]
    filled = made.filled(made.seen.rows(cells, 300))
    assert np.corrcoef(filled[hidden, 1], b[hidden])[0, 1] > 0.95
    assert made.trees is not None
    weights = np.array([member.weight for member in made.members])
    assert np.ptp(weights) > 0.01
    rng = np.random.default_rng([0, 300, 2])
    again = LabelTrees.of(filled, made.trees.code, 2, made.members, rng)
    np.testing.assert_allclose(again.mixing.weights, made.trees.mixing.weights, rtol=1e-9)


def test_rows_do_not_vote_on_themselves(seed: int) -> None:
    """Labels that have nothing to do with features: by trees without the row they look like it."""
    rng = np.random.default_rng(seed)
    x, code = rng.standard_normal((200, 4)), rng.integers(2, size=200)
    left_out = np.full((200, 2), np.log(0.5))
    experts: Any = SimpleNamespace(left_out=left_out, weight=1.0, power=1.0)
    trees = LabelTrees.of(x, code, 2, [experts], rng)
    assert trees.mixing.weights[1] < 0.4
    plain = LabelMixing(np.array([0.0, 1.0, 0.0]), np.full(2, 0.5), 1.0)
    sure = replace(trees, mixing=plain)
    seen = sure.mixed(np.zeros((200, 2)), x)[np.arange(200), code]
    unseen = sure.mixed(np.zeros((200, 2)), rng.standard_normal((200, 4)))
    assert seen.mean() > 0.7 > unseen.max(axis=1).mean()
