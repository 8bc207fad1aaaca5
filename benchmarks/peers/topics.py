"""Topic models of other packages, as `counts.py` compares them: p (rows, columns) of new rows.

Each is given the observed counts of a new row and says how likely each column is in it. What a
method has to choose it chooses on 15 % of the training rows, observed as new rows will be: there
is one choice for each share observed.

    lda       scikit-learn's latent Dirichlet allocation, online
    gibbs     tomotopy's latent Dirichlet allocation, collapsed Gibbs sampling, priors optimised
    ctm       tomotopy's correlated topic model
    hdp       gensim's hierarchical Dirichlet process
    nmf       scikit-learn's non-negative factorization under the Kullback-Leibler loss
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

Array = np.ndarray
Shares = Callable[[csr_array], Array]  # p of new rows, given their observed counts


def lda(train: csr_array, components: int, seed: int, alpha: float, eta: float) -> Shares:
    """Return the fitted model's forecasts."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        components,
        doc_topic_prior=alpha,
        topic_word_prior=eta,
        learning_method="online",
        batch_size=256,
        max_iter=10,
        random_state=seed,
    ).fit(train)
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    return lambda seen: model.transform(seen) @ topics


def nmf(train: csr_array, components: int, seed: int, penalty: float) -> Shares:
    """Return the fitted model's forecasts."""
    from sklearn.decomposition import NMF

    model = NMF(
        components,
        init="nndsvda",
        beta_loss="kullback-leibler",
        solver="mu",
        max_iter=100,
        alpha_W=penalty,
        random_state=seed,
    ).fit(train)

    def shares(seen: csr_array) -> Array:
        rates = model.transform(seen) @ model.components_ + 1e-9
        return rates / rates.sum(axis=1, keepdims=True)

    return shares


def words_of(rows: csr_array) -> Iterator[list[str]]:
    """Yield every row's columns, each as often as it was counted."""
    for start, end in itertools.pairwise(rows.indptr):
        columns = np.repeat(rows.indices[start:end], rows.data[start:end].astype(int))
        yield [str(column) for column in columns]


def tomotopy(name: str, train: csr_array, components: int, seed: int, eta: float) -> Shares:
    """Return the forecasts of LDA or CTM."""
    import tomotopy

    model = getattr(tomotopy, f"{name}Model")(k=components, eta=eta, seed=seed)
    for words in words_of(train):
        model.add_doc(words)
    model.burn_in = 50
    model.train(200, workers=1)
    place = np.array([int(word) for word in model.used_vocabs])
    topics = np.zeros((components, train.shape[1]))
    topics[:, place] = [model.get_topic_word_dist(k) for k in range(components)]
    even = np.mean([doc.get_topic_dist() for doc in model.docs], axis=0)

    def shares(seen: csr_array) -> Array:
        theta = np.tile(even, (seen.shape[0], 1))
        given = [(u, words) for u, words in enumerate(words_of(seen)) if words]
        docs = [model.make_doc(words) for _, words in given]
        found, _ = model.infer(docs, iterations=100, workers=1)
        for (u, _), one in zip(given, found, strict=True):
            theta[u] = one
        return theta @ topics

    return shares


def hdp(train: csr_array, components: int, seed: int, eta: float) -> Shares:
    """Return the fitted model's forecasts."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import HdpModel

    def corpus(rows: csr_array) -> Any:
        return Sparse2Corpus(rows.tocsc(), documents_columns=False)

    names = {i: str(i) for i in range(train.shape[1])}
    model = HdpModel(corpus(train), names, T=2 * components, eta=eta, random_state=seed)
    topics = model.get_topics()

    def shares(seen: csr_array) -> Array:
        theta = np.zeros((seen.shape[0], topics.shape[0]))
        lda = model.suggested_lda_model()
        topics[:] = lda.get_topics()
        for u, row in enumerate(corpus(seen)):
            for k, share in lda.get_document_topics(row, minimum_probability=0.0):
                theta[u, k] = share
        return theta / theta.sum(axis=1, keepdims=True) @ topics

    return shares


# The choices of each, and how it is fitted with one of them.
PEERS: dict[str, tuple[list[tuple[float, ...]], Callable[..., Shares]]] = {
    "lda": ([(0.02, 0.05), (0.1, 0.05), (0.02, 0.3), (0.1, 0.3)], lda),
    "gibbs": ([(0.02,), (0.1,)], lambda *a: tomotopy("LDA", *a)),
    "ctm": ([(0.02,), (0.1,)], lambda *a: tomotopy("CT", *a)),
    "hdp": ([(0.01,), (0.1,)], hdp),
    "nmf": ([(0.0,), (0.001,)], nmf),
}
