"""Passes over rows and columns of a matrix of counts, for Poisson factorization.

Rows u, columns i, components k; the counts of row u are the entries e = indptr[u] .. indptr[u+1]-1,
y = count[e] in column[e]. Component arrays are padded with zeros to K, a multiple of 8. Letters are
those of `glfm_cli.latent.cnpf`; here also

    J     F (F + 1) / 2 pairs i >= j of the F coordinates of v, in the order 00, 10, 11, 20, ..
    S     exposure of a row: sum over its columns of E a_ki; row own[at[u]] of `own` where at[u] >= 0,
          else `shared`; in a topic model g_u for every k
    cov   covariance of q(v_u): the J pairs, or the F variances alone

Every function works on the units start .. end - 1, writes nothing of other units, holds no lock and
draws no random numbers, so that blocks of units may be given to any number of threads.
"""

from libc.math cimport INFINITY, exp, fabs, log, sqrt
from libc.stdint cimport int16_t, int64_t
from libc.string cimport memcpy, memset

include "_inverse.pxi"
include "_cnpf_row.pxi"

PAD = GLFM_PAD


def work_size(int K, int F):
    """Return the length of the work array of these functions."""
    return (24 + 2 * F) * K + 4 * (F * (F + 1) // 2) + 8 * F + 3 * F * F


def slopes_of_row(
    const double[::1] w, const double[::1] n, const double[::1] S,
    const double[:, ::1] loadings, const double[:, ::1] products, const double[::1] prior,
    const double[::1] node, const double[::1] weight, bint diagonal,
    const double[::1] m, const double[::1] cov,
    double[::1] gradient,            # out (F,)
    double[::1] bends,               # out (J,)
    double[::1] spreads,             # out (J,)
    double[::1] work,
):
    """Fill the derivatives by which `visit_rows` moves q(v) of a row, for tests."""
    cdef Sizes size
    cdef Link link
    cdef int K = <int> w.shape[0]
    cdef double* mean = &work[0]
    cdef double* var = mean + K
    cdef double* log_r = mean + 2 * K
    cdef double* rho = mean + 3 * K
    size.K, size.F = K, <int> prior.shape[0]
    size.J, size.diagonal = size.F * (size.F + 1) // 2, diagonal
    link.Q = <int> node.shape[0]
    link.node = &node[0] if link.Q else NULL
    link.weight = &weight[0] if link.Q else NULL
    project(&size, &m[0], &cov[0], &loadings[0, 0], &products[0, 0], mean + 4 * K, mean, var)
    moments(&link, K, mean, var, log_r, rho)
    fill_slopes(&size, &link, &w[0], &n[0], &S[0], &prior[0], &loadings[0, 0], &products[0, 0],
                &m[0], mean, var, rho, &gradient[0], &bends[0], &spreads[0], mean + 4 * K)


def visit_rows(
    Py_ssize_t start, Py_ssize_t end,
    const int64_t[::1] indptr, const int[::1] column, const int[::1] count,
    const double[:, ::1] a,          # in (I, K) exp(E log a), or E a for the mean step
    const double[::1] w,             # in (K,)
    const double[:, ::1] loadings,   # in (F, K) lt
    const double[:, ::1] products,   # in (J, K) lt_i lt_j
    const double[::1] prior,         # in (F,) P
    const double[::1] shared, const double[:, ::1] own, const int[::1] at,  # exposures
    const double[::1] node, const double[::1] weight,  # in (Q,) softplus link; empty: exp link
    bint diagonal, bint mean_step, int rounds, double tolerance,
    double[::1] g,                   # in-out (U,), or empty: not a topic model
    double[:, ::1] n,                # in-out (U, K)
    double[:, ::1] m,                # in-out (U, F)
    double[:, ::1] cov,              # in-out (U, J) or (U, F)
    double[:, ::1] rho,              # out (U, K)
    double[:, ::1] x,                # out (U, K) exp(E log x) up to a factor, of the last round
    double[::1] ratio,               # out (nnz,) y / sum_k x a, of the last round
    double[::1] bound,               # out (U,) terms of the bound, or empty
    double[::1] work,
):
    """Renew q of every row: its counts by component, then v; `rounds` times, or until settled.

    Settled means that the counts by component changed by less than `tolerance` of their sum. The
    bound's terms leave out log y!, the prior's log|P|/2 and F/2. O(K (cells + J) + F^3) a round.
    """
    cdef Sizes size
    cdef Link link
    cdef Py_ssize_t u, k
    cdef int64_t first, cells
    cdef int r
    cdef double part = 0.0, top = 0.0, total, change
    cdef bint wanted = bound.shape[0] > 0, topics = g.shape[0] > 0
    cdef const double* S
    cdef double* filled = &work[0]
    cdef double* mean
    cdef double* var
    cdef double* log_r
    cdef double* rate
    cdef double* log_x
    cdef double* new
    cdef double* rest
    size.K, size.F = <int> w.shape[0], <int> prior.shape[0]
    size.J, size.diagonal = size.F * (size.F + 1) // 2, diagonal
    link.Q = <int> node.shape[0]
    link.node = &node[0] if link.Q else NULL
    link.weight = &weight[0] if link.Q else NULL
    cdef int K = size.K
    mean, var, log_r = filled + K, filled + 2 * K, filled + 3 * K
    rate, log_x, new, rest = filled + 4 * K, filled + 5 * K, filled + 6 * K, filled + 7 * K
    with nogil:
        for u in range(start, end):
            first, cells = indptr[u], indptr[u + 1] - indptr[u]
            fill_moments(&size, &link, u, loadings, products, m, cov, rest, mean, var, log_r,
                         &rho[u, 0])
            total = 0.0
            for k in range(cells):
                total += count[first + k]
            if topics:
                g[u] = total_exposure(K, total, g[u], &w[0], &n[u, 0], &rho[u, 0])
            S = exposure_of(u, shared, own, at, g, filled)
            for r in range(rounds):
                for k in range(K):
                    rate[k] = rho[u, k] + S[k]
                    new[k] = w[k] + n[u, k]
                if mean_step:
                    for k in range(K):
                        x[u, k] = new[k] / rate[k]
                else:
                    glfm_log_means(K, new, rate, log_x)
                    top = glfm_relative_exp(K, log_x, &x[u, 0])
                part = glfm_split_counts(
                    cells, &column[first] if cells else NULL, &count[first] if cells else NULL,
                    K, &x[u, 0], &a[0, 0], wanted, &ratio[first] if cells else NULL, new)
                change = 0.0
                for k in range(K):
                    change += fabs(new[k] - n[u, k])
                    if wanted and new[k] > 0.0:
                        part -= new[k] * (log_x[k] - top)
                    n[u, k] = new[k]
                if size.F:
                    step_gaussian(&size, &link, &w[0], &n[u, 0], S, &prior[0], &loadings[0, 0],
                                  &products[0, 0], &m[u, 0], &cov[u, 0], mean, var, log_r,
                                  &rho[u, 0], rest)
                if topics:
                    g[u] = total_exposure(K, total, g[u], &w[0], &n[u, 0], &rho[u, 0])
                    S = exposure_of(u, shared, own, at, g, filled)
                if change < tolerance * total:
                    break
            if wanted:
                part += glfm_log_gamma_rise(K, &w[0], &n[u, 0])
                part += glfm_rate_objective(K, &w[0], &n[u, 0], log_r, &rho[u, 0], S)
                if size.F:
                    part += gaussian_terms(&size, &prior[0], &m[u, 0], &cov[u, 0], rest)
                if topics and total > 0.0:
                    part += total - total * log(total / g[u])
                bound[u] = part


def leave_out(
    Py_ssize_t start, Py_ssize_t end,
    const int64_t[::1] indptr, const int[::1] column, const int[::1] count,
    const double[:, ::1] a,          # in (I, K) E a
    const double[::1] w,             # in (K,)
    const double[:, ::1] shape,      # in (I, T) of q(a)
    double least,                    # the prior's
    double[:, ::1] x,                # in (U, K) E x
    double[:, ::1] n,                # in-out (U, K)
    int16_t[::1] top, float[::1] own,     # in-out (nnz,) the component of a cell's largest part, and it
    int16_t[::1] was, float[::1] change,  # out (nnz,) for `add_columns`
    double[::1] ratio,               # out (nnz,)
    double[::1] work,
):
    """Renew counts by component n by the mean step, largest parts resting on the other cells."""
    cdef Py_ssize_t u
    cdef int64_t first, cells
    cdef int K = <int> w.shape[0], T = <int> shape.shape[1]
    with nogil:
        for u in range(start, end):
            first, cells = indptr[u], indptr[u + 1] - indptr[u]
            if cells:
                glfm_leave_out(cells, &column[first], &count[first], K, T, &x[u, 0], &n[u, 0],
                               &w[0], &a[0, 0], &shape[0, 0], least, &top[first], &own[first],
                               &was[first], &change[first], &ratio[first], &work[0])
                memcpy(&n[u, 0], &work[0], K * sizeof(double))


def add_columns(
    Py_ssize_t start, Py_ssize_t end,
    const int64_t[::1] indptr, const int[::1] row, const int[::1] cell,
    const double[::1] ratio,     # in (nnz,) row order
    const double[:, ::1] x,      # in (U, K)
    const double[:, ::1] a,      # in (I, K)
    const int16_t[::1] was, const float[::1] change,  # in (nnz,) of `leave_out`, or empty
    double[:, ::1] out,          # out (I, K) counts of column i given to component k
):
    """Fill the counts of columns by component, of the shares that rows used last."""
    cdef Py_ssize_t i, k, e
    cdef bint changed = was.shape[0] > 0
    cdef int K = <int> x.shape[1]
    cdef int64_t first, cells
    with nogil:
        for i in range(start, end):
            first, cells = indptr[i], indptr[i + 1] - indptr[i]
            if cells:
                glfm_gather_counts(cells, &row[first], &cell[first], K, &ratio[0], &x[0, 0],
                                   &out[i, 0])
                for k in range(K):
                    out[i, k] *= a[i, k]
                if changed:
                    for e in range(first, first + cells):
                        out[i, was[cell[e]]] += change[cell[e]]
                    for k in range(K):
                        out[i, k] = max(out[i, k], 0.0)
            else:
                memset(&out[i, 0], 0, K * sizeof(double))


def add_locations(
    Py_ssize_t start, Py_ssize_t end,
    const double[::1] w, const double[:, ::1] loadings, const double[:, ::1] products,
    const double[::1] shared, const double[:, ::1] own, const int[::1] at, const double[::1] g,
    const double[::1] node, const double[::1] weight, bint diagonal,
    const double[:, ::1] n, const double[:, ::1] m, const double[:, ::1] cov,
    const double[:, ::1] rho,
    double[:, ::1] gradient,     # in-out (D, K)
    double[:, ::1] hessian,      # in-out (D (D + 1) / 2, K) minus the second derivatives
    double[::1] work,
):
    """Add what the rows say of the locations, q(x) held: of sum_u w E log r - E x rho.

    exp link: the exact Hessian, of e = (m - cov lt)_d; softplus link: a positive one. O(K D^2) a row.
    """
    cdef Sizes size
    cdef Link link
    cdef Py_ssize_t u, k
    cdef int i, j, p, D = <int> gradient.shape[0], K = <int> w.shape[0]
    cdef double ex, q
    cdef const double* S
    cdef double* filled = &work[0]
    cdef double* mean
    cdef double* var
    cdef double* log_r
    cdef double* now
    cdef double* by_mean
    cdef double* by_var
    cdef double* bend
    cdef double* scratch
    cdef double* SL
    cdef double* E
    cdef double* pairs
    cdef double* one
    size.K, size.F = K, <int> m.shape[1]
    size.J, size.diagonal = size.F * (size.F + 1) // 2, diagonal
    link.Q = <int> node.shape[0]
    link.node = &node[0] if link.Q else NULL
    link.weight = &weight[0] if link.Q else NULL
    mean, var, log_r, now = filled + K, filled + 2 * K, filled + 3 * K, filled + 4 * K
    by_mean, by_var, bend, scratch = filled + 5 * K, filled + 6 * K, filled + 7 * K, filled + 8 * K
    SL = scratch + 4 * K
    E = SL + D * K
    pairs = E + D * K
    one = pairs + size.J
    with nogil:
        for u in range(start, end):
            S = exposure_of(u, shared, own, at, g, filled)
            if link.Q:
                project(&size, &m[u, 0], &cov[u, 0], &loadings[0, 0], &products[0, 0], pairs,
                        mean, var)
                glfm_softplus_partials(
                    K, link.Q, link.node, link.weight, mean, var,
                    scratch, scratch + K, scratch + 2 * K, scratch + 3 * K)
            for k in range(K):
                ex = (w[k] + n[u, k]) / (rho[u, k] + S[k])
                if link.Q:
                    by_mean[k] = w[k] * scratch[k] - ex * scratch[2 * K + k]
                    by_var[k] = 2.0 * (w[k] * scratch[K + k] - ex * scratch[3 * K + k])
                    bend[k] = -by_var[k] if by_var[k] < 0.0 else 0.0
                else:
                    q = ex * rho[u, k]
                    by_mean[k], by_var[k], bend[k] = q - w[k], -q, q
            p = 0
            for i in range(D):
                for j in range(size.F):
                    if diagonal:
                        one[j] = cov[u, i] if i == j else 0.0
                    elif j <= i:
                        one[j] = cov[u, i * (i + 1) // 2 + j]
                    else:
                        one[j] = cov[u, j * (j + 1) // 2 + i]
                    if j <= i:
                        pairs[p] = one[j]
                        p += 1
                glfm_combine_rows(size.F, K, one, &loadings[0, 0], SL + i * K)
                for k in range(K):
                    E[i * K + k] = m[u, i] if link.Q else m[u, i] - SL[i * K + k]
            glfm_add_gradient(D, K, by_mean, by_var, &m[u, 0], SL, &gradient[0, 0])
            glfm_add_outer(D, K, bend, E, pairs, &hessian[0, 0])


def evaluate_locations(
    Py_ssize_t start, Py_ssize_t end,
    const double[::1] w, const double[:, ::1] loadings, const double[:, ::1] products,
    const double[::1] shared, const double[:, ::1] own, const int[::1] at, const double[::1] g,
    const double[::1] node, const double[::1] weight, bint diagonal,
    const double[:, ::1] n, const double[:, ::1] m, const double[:, ::1] cov,
    const double[:, ::1] rho,    # in (U, K) that q(x) was renewed with
    double[:, ::1] new_rho,      # out (U, K) of these loadings
    double[:, ::1] sums,         # in-out (2, K): w E log r - E x rho, and E log r
    double[::1] work,
):
    """Fill the rates of other locations, and add the objective of `add_locations`. O(K J) a row."""
    cdef Sizes size
    cdef Link link
    cdef Py_ssize_t u, k
    cdef int K = <int> w.shape[0]
    cdef double ex
    cdef const double* S
    cdef double* filled = &work[0]
    cdef double* mean = filled + K
    cdef double* var = filled + 2 * K
    cdef double* log_r = filled + 3 * K
    cdef double* pairs = filled + 4 * K
    size.K, size.F = K, <int> m.shape[1]
    size.J, size.diagonal = size.F * (size.F + 1) // 2, diagonal
    link.Q = <int> node.shape[0]
    link.node = &node[0] if link.Q else NULL
    link.weight = &weight[0] if link.Q else NULL
    with nogil:
        for u in range(start, end):
            S = exposure_of(u, shared, own, at, g, filled)
            fill_moments(&size, &link, u, loadings, products, m, cov, pairs, mean, var, log_r,
                         &new_rho[u, 0])
            for k in range(K):
                ex = (w[k] + n[u, k]) / (rho[u, k] + S[k])
                sums[0, k] += w[k] * log_r[k] - ex * new_rho[u, k]
                sums[1, k] += log_r[k]


def add_rises(
    Py_ssize_t start, Py_ssize_t end, const double[::1] w, const double[:, ::1] n,
    double[:, ::1] sums,         # in-out (3, K)
):
    """Add logGamma(w+n) - logGamma(w) and its two derivatives by log w, but for w's own part.

    w (psi(w+n) - psi(w)) and w^2 (psi'(w+n) - psi'(w)). O(K) a row.
    """
    cdef Py_ssize_t u
    with nogil:
        for u in range(start, end):
            glfm_add_rises(<int> w.shape[0], &w[0], &n[u, 0], &sums[0, 0], &sums[1, 0],
                           &sums[2, 0])


def add_rates(
    Py_ssize_t start, Py_ssize_t end, const double[::1] w,
    const double[::1] shared, const double[:, ::1] own, const int[::1] at, const double[::1] g,
    const double[:, ::1] n, const double[:, ::1] rho,
    double[:, ::1] sums,         # in-out (2, K): log(rho + S), and E x = (w + n) / (rho + S)
    double[::1] work,
):
    """Add the logarithms of the rates of q(x), and its means. O(K) a row."""
    cdef Py_ssize_t u
    with nogil:
        for u in range(start, end):
            glfm_add_rates(<int> w.shape[0], &w[0], &n[u, 0], &rho[u, 0],
                           exposure_of(u, shared, own, at, g, &work[0]), &sums[0, 0], &sums[1, 0])


def fill_exposures(
    Py_ssize_t start, Py_ssize_t end,
    const int64_t[::1] indptr, const int[::1] index, const unsigned char[::1] seen,
    const double[::1] total,     # in (K,) sum over all units of the other side
    const double[:, ::1] mean,   # in (n_other, K)
    double[:, ::1] out,          # out (n, K)
):
    """Sum means over the other side's units that are not missing: the total less those listed.

    Or those listed alone, where `seen` says that the list is of what is there. O(K) an entry.
    """
    cdef Py_ssize_t u, k, K = total.shape[0]
    cdef int64_t e
    with nogil:
        for u in range(start, end):
            memset(&out[u, 0], 0, K * sizeof(double))
            for e in range(indptr[u], indptr[u + 1]):
                for k in range(K):
                    out[u, k] += mean[index[e], k]
            if not seen[u]:
                for k in range(K):
                    out[u, k] = total[k] - out[u, k]
