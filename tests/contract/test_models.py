"""What every model promises of its chains and draws, the toys among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.completion.matrix.matrix import prepare_matrix
from glfm_cli.encoding import encode_triplets, pack_trials
from glfm_cli.inference import chains
from glfm_cli.inference.chain import Chain, spans_of
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.one_draw import draw_jointly
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.model import Pairs, Problem, Sizes, Sparse
from glfm_cli.links.law import normal
from glfm_cli.links.observation import Counting
from glfm_cli.schema import Schema
from glfm_cli.store.arrays import read_one, to_stream
from tests.contract.parts import (
    COUNTS,
    EVERY_MODEL,
    FEW,
    N_TRIALS,
    OF_DENSE,
    SPARSE,
    entry_of,
    types_of,
    values_of,
)

pytestmark = [pytest.mark.usefixtures("toys"), pytest.mark.kernels]
N = 30
# A model by its name, in each of its layouts, and with settings that change what a state holds.
CASES: dict[str, tuple[str, str, dict[str, object]]] = {
    **{name: (name, "dense", {}) for name in OF_DENSE},
    **{f"{name} of counts": (name, "counts", {}) for name in COUNTS},
    **{f"{name} of triplets": (name, "sparse", {}) for name in SPARSE},
    "glfm, unscaled weights": ("glfm", "dense", {"prior_scale": "independent"}),
    "glfm without bias": ("glfm", "dense", {"bias": False, "initial_features": 3}),
    "glfm, fixed hyperparameters": (
        "glfm",
        "dense",
        {"alpha": 2, "weight_variance": 1, "link_noise": 0.1},
    ),
    "glfm, capped": ("glfm", "dense", {"max_features": 2}),
    "glfm, linear part": ("glfm", "dense", {"components": 2}),
    "auto, trees": ("auto", "dense", {"glfm": 0, "linear": 0, "forest": 1}),
    "auto, trees in time": ("auto", "dense", {"glfm": 0, "linear": 0, "forest": 1}),
    "forest in time": ("forest", "dense", {}),
    "bsvd, slopes": ("bsvd", "sparse", {"slopes": True, "row_noise": True}),
}


@pytest.fixture(scope="module", params=CASES)
def problem(request: Any, toys: None) -> Problem:
    """A table of every type, or a matrix of reals, under a model."""
    name, layout, settings = CASES[request.param]
    rng = np.random.default_rng(4)
    settings = FEW.get(name, {}) | settings
    asked = {"model": name, "chains": 1, "seed": 0, "settings": settings}
    if EVERY_MODEL[name].kind == "gibbs":
        asked |= {"warmup": 0, "draws": 1, "thin": 1}
    if layout != "dense":
        i, j = (part.ravel() for part in np.indices((8, 6)))
        seen = rng.random(i.size) < 0.8
        whole = layout == "counts"
        x = rng.poisson(1.0, i.size) + 1 if whole else rng.normal(size=i.size)
        table = pa.table({"u": i[seen], "v": j[seen], "x": x[seen]})
        kind = {"type": "count", "absent": "zero"} if whole else {"type": "real"}
        types = {"u": "row", "v": "column", "x": {**kind, "role": "value"}}
        triplets = encode_triplets(table, Schema.from_dict({"columns": types}))
        return prepare_matrix(triplets, **asked)[0]
    kinds = {kind: kind for kind in types_of("forest" if "forest" in settings else name)}
    if len(kinds) == 1:  # a table of several columns all the same
        kinds = {f"{kind} {i}": kind for kind in kinds for i in range(5)}
    columns = {n: values_of(kind, rng.normal(size=N), rng) for n, kind in kinds.items()}
    table = pa.table({n: pa.array(c, mask=rng.random(N) < 0.2) for n, c in columns.items()})
    table = table.append_column("n", [[str(N_TRIALS)] * N])
    types = {"n": "ignore", **{n: entry_of(kind) for n, kind in kinds.items()}}
    if "in time" in request.param:
        table = table.append_column("t", pa.array(rng.permutation(N).astype(float)))
        types["t"] = {"type": "real", "role": "time"}
    return prepare(table, {"columns": types}, **asked)[0]


def bytes_of(chain: chains.AnyChain, *besides: str) -> bytes:
    return to_stream({name: v for name, v in chain.save().items() if name not in besides})


def swept(problem: Problem, n: int, threads: int = 1) -> chains.AnyChain:
    """Return a chain after n sweeps or iterations."""
    chain = chains.start(problem, 3, 1, threads)
    for _ in range(n):
        chain.sweep(adapt=True)
    return chain


def rows_of(problem: Problem) -> Any:
    """Return every row of a table, or every observed pair of a matrix."""
    if not isinstance(problem.layout, Sparse):
        return np.arange(problem.n_rows)
    entries = problem.layout.entries
    return Pairs(entries.row.astype(np.int64), entries.column.astype(np.int64))


def sizes_of(problem: Problem) -> Sizes:
    """Return the sizes of a problem as the folder of a fit knows them."""
    spans = spans_of(problem.links)
    if not isinstance(problem.layout, Sparse):
        return Sizes(problem.n_rows, spans[-1][1], spans)
    return Sizes(*problem.layout.entries.shape, spans)


def trials_of(problem: Problem, n: int) -> dict[int, Array]:
    """Return by column of successes what n cells of it lie between."""
    each = np.tile([0.0, N_TRIALS], (n, 1))
    return {d: each for d, link in enumerate(problem.links) if isinstance(link, Counting)}


@pytest.mark.parametrize("adapting", [0, 4])
def test_a_saved_chain_goes_on_bit_for_bit(problem: Problem, adapting: int) -> None:
    """Saved after each of its sweeps, in the warm-up and after it, or never."""
    straight, broken = (chains.start(problem, 3, 1) for _ in range(2))
    for sweep in range(7):
        straight.sweep(adapt=sweep < adapting)
        broken.sweep(adapt=sweep < adapting)
        broken = chains.load(problem, read_one(pa.py_buffer(bytes_of(broken))))
    assert straight.done == broken.done == 7
    assert bytes_of(straight) == bytes_of(broken)
    assert straight.keep().trace == broken.keep().trace
    assert problem.model.warnings(straight.state) == problem.model.warnings(broken.state)


def test_keeping_a_draw_changes_nothing_that_follows(problem: Problem) -> None:
    kept, not_kept = (chains.start(problem, 3, 1) for _ in range(2))
    for _ in range(4):
        kept.sweep(adapt=True)
        kept.keep()
        not_kept.sweep(adapt=True)
    noted = "latent.at_cap"  # for a warning
    assert bytes_of(kept, noted) == bytes_of(not_kept, noted)


def test_a_draw_stays_as_it_was_while_its_chain_goes_on(problem: Problem) -> None:
    chain = swept(problem, 2)
    draw = chain.keep()
    before = to_stream(problem.model.pack(draw.latent))
    for _ in range(2):
        chain.sweep(adapt=True)
    assert to_stream(problem.model.pack(draw.latent)) == before


def test_sweeps_do_not_depend_on_the_number_of_threads(problem: Problem) -> None:
    assert bytes_of(swept(problem, 3)) == bytes_of(swept(problem, 3, threads=3))


def spoilt(arrays: Mapping[str, Array]) -> list[dict[str, Array]]:
    """Return arrays each of which is left out, of another type or shape, no number or no index."""
    found = []
    for name, value in arrays.items():
        array = np.asarray(value)
        wrong = [array.astype(np.int32 if array.dtype != np.int32 else np.float64)]
        wrong += [np.zeros((2, 2, 2, 2)), array.reshape(1, *array.shape)]
        if array.dtype == np.float64 and array.size:
            wrong.append(np.full_like(array, np.nan))
        if array.dtype in (np.int32, np.int64) and array.size:
            wrong += [np.full_like(array, -7)]
            counter = name.rpartition(".")[2] in ("sweep", "steps")
            wrong += [] if counter else [np.full_like(array, 2**30)]
        found += [{**arrays, name: one} for one in wrong]
        found.append({other: one for other, one in arrays.items() if other != name})
    return found


def test_a_state_without_an_array_or_with_another_is_refused(problem: Problem) -> None:
    arrays = swept(problem, 2).save()
    chains.load(problem, arrays)
    for wrong in spoilt(arrays):
        if wrong.keys() != arrays.keys() and len(wrong) == len(arrays) - 1:
            (gone,) = arrays.keys() - wrong.keys()
            if "params." in gone:  # what is noted in a sweep need not be there
                continue
        with pytest.raises(ValueError):
            chains.load(problem, wrong)


def test_a_packed_draw_comes_back_bit_for_bit(problem: Problem) -> None:
    model, sizes = problem.model, sizes_of(problem)
    packed = model.pack(swept(problem, 3).keep().latent)
    again = model.unpack(read_one(pa.py_buffer(to_stream(packed))), sizes)
    assert to_stream(model.pack(again)) == to_stream(packed)


def test_a_packed_draw_that_was_corrupted_is_refused(problem: Problem) -> None:
    model, sizes = problem.model, sizes_of(problem)
    packed = model.pack(swept(problem, 3).keep().latent)
    for wrong in spoilt(packed):
        with pytest.raises(ValueError):
            model.unpack(wrong, sizes)
    bigger = sizes._replace(rows=sizes.rows + 1)
    with pytest.raises(ValueError):
        model.unpack(packed, bigger)


def test_joint_draws_lie_inside_the_supports(problem: Problem) -> None:
    draw = swept(problem, 3).keep()
    posterior = Posterior(problem.model, problem.links, spans_of(problem.links), ((draw,),))
    which = rows_of(problem)
    if isinstance(problem.layout, Sparse):
        posterior = posterior.at(which)
    cells = {d: np.arange(problem.n_rows) for d in range(len(problem.links))}
    for _ in range(3):
        ends = trials_of(problem, problem.n_rows)
        drawn = draw_jointly(posterior, cells, np.random.default_rng(0), ends=ends)
        for d, x in drawn.items():
            problem.links[d].check_cells(pack_trials(x, N_TRIALS) if d in ends else x)
            assert (d in ends or problem.links[d].discrete) or np.all(
                (x >= problem.links[d].lower) & (x <= problem.links[d].upper)  # type: ignore[attr-defined]
            )


def test_the_same_row_has_the_same_law_whichever_rows_are_asked_with_it(problem: Problem) -> None:
    draw, which = swept(problem, 3).keep(), rows_of(problem)
    law = problem.model.cells_law(draw.latent, which)
    last = problem.model.cells_law(draw.latent, which.take(np.array([7])))
    for d, link in enumerate(problem.links):
        x = link.sample(law.column(d), draw.params[d], np.random.default_rng(1))
        one = link.log_density(x[7:8], law.column(d, np.array([7])), draw.params[d])
        other = link.log_density(x[7:8], last.column(d), draw.params[d])
        whole = link.log_density(x, law.column(d), draw.params[d])[7:8]
        assert np.allclose(one, other, rtol=1e-9)
        assert np.allclose(one, whole, rtol=1e-9)


def test_a_column_of_nothing_but_missing_new_cells_is_predicted(problem: Problem) -> None:
    if isinstance(problem.layout, Sparse):
        pytest.skip("rows of a matrix without cells are known from their features alone")
    draw = swept(problem, 3).keep()
    posterior = Posterior(problem.model, problem.links, spans_of(problem.links), ((draw,),))
    new = problem.take(np.arange(3))
    new = replace(new, xs=tuple(np.full(3, np.nan) for _ in problem.xs))
    one, two = (fold_in(posterior, new, seed=1, threads=n) for n in (1, 2))
    cells = {d: np.arange(3) for d in range(len(problem.links))}
    ends = trials_of(problem, 3)
    drawn = [draw_jointly(p, cells, np.random.default_rng(0), ends=ends) for p in (one, two)]
    for d, x in drawn[0].items():
        problem.links[d].check_cells(pack_trials(x, N_TRIALS) if d in ends else x)
        assert np.array_equal(x, drawn[1][d])


def test_the_traced_likelihood_has_the_noise_of_each_column(problem: Problem) -> None:
    chain = swept(problem, 3)
    if not isinstance(chain, Chain) or isinstance(problem.layout, Sparse):
        pytest.skip("of a table seen as Gaussian cells")
    chain.model.fill_eta(chain.state, chain.eta)
    noise, total = chain.model.noise(chain.state), 0.0
    for d, (link, x) in enumerate(zip(problem.links, problem.xs, strict=True)):
        seen = ~np.isnan(x)
        law = normal(chain.eta_of(d)[seen], noise[d])
        total += float(link.log_density(x[seen], law, chain.params[d]).sum())
    assert chain.log_likelihood() == pytest.approx(total)
