"""Passes over the observed cells of a matrix, for the low-rank model.

Cells are visited by unit, a row or a column of the matrix; those of unit u are the entries
e = indptr[u] .. indptr[u + 1] - 1, with the other side's index index[e]. Arrays over cells are in
row order: entry e of a column is cell[e] there, and `cell` is empty for rows, where it is e itself.

    w     the precision of a cell, weight[cell] prec_own[u] prec_other[index]; an empty `weight` is 1
    E     residuals y - x of the cells, row order

Every function works on the units start .. end - 1, reads and writes nothing of other units, holds
no lock and draws no random numbers, so that blocks of units may be given to any number of threads.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dgemv, dsyrk, dtrsv
from scipy.linalg.cython_lapack cimport dpotrf

cdef enum:
    CHUNK = 64  # cells gathered at a time: they stay in the nearest cache


def scan_component(
    Py_ssize_t start, Py_ssize_t end,
    const int64_t[::1] indptr, const int[::1] index,
    const int[::1] cell,         # in (m,) place of an entry in E and weight, or empty
    const double[::1] weight,    # in (m,) or empty
    const double[:, ::1] v,      # in (J, 2): prec_j V_j and prec_j V_j^2
    const double[::1] E,         # in (m,)
    double[::1] residual,        # out (I,)  sum_j w E V_j
    double[::1] square,          # out (I,)  sum_j w V_j^2
):
    """Fill what a unit says of its factor, given the other side's. 2 flops a cell and sum."""
    cdef Py_ssize_t i
    cdef int64_t e, c
    cdef double r, q, a
    cdef bint weighted = weight.shape[0] > 0, elsewhere = cell.shape[0] > 0
    with nogil:
        for i in range(start, end):
            r = q = 0.0
            if weighted or elsewhere:
                for e in range(indptr[i], indptr[i + 1]):
                    c = cell[e] if elsewhere else e
                    a = weight[c] if weighted else 1.0
                    r += a * E[c] * v[index[e], 0]
                    q += a * v[index[e], 1]
            else:
                for e in range(indptr[i], indptr[i + 1]):
                    r += E[e] * v[index[e], 0]
                    q += v[index[e], 1]
            residual[i] = r
            square[i] = q


def shift_residuals(
    Py_ssize_t start, Py_ssize_t end,
    const int64_t[::1] indptr, const int[::1] index,
    const double[::1] step,      # in (I,)
    const double[::1] v,         # in (J,)
    double[::1] E,               # in-out (m,)
):
    """E_ij += step_i v_j."""
    cdef Py_ssize_t i
    cdef int64_t e
    cdef double d
    with nogil:
        for i in range(start, end):
            d = step[i]
            for e in range(indptr[i], indptr[i + 1]):
                E[e] += d * v[index[e]]


def fill_means(
    Py_ssize_t start, Py_ssize_t end,
    const int64_t[::1] indptr, const int[::1] index,
    const double[:, ::1] left,   # in (I, q)
    const double[:, ::1] right,  # in (J, q)
    double[::1] x,               # out (m,)
):
    """x_ij = left_i . right_j, at the observed cells."""
    cdef Py_ssize_t i, k, q = left.shape[1]
    cdef int64_t e
    cdef double total
    cdef const double* a
    cdef const double* b
    with nogil:
        for i in range(start, end):
            a = &left[i, 0] if q else NULL
            for e in range(indptr[i], indptr[i + 1]):
                total = 0.0
                b = &right[index[e], 0] if q else NULL
                for k in range(q):
                    total += a[k] * b[k]
                x[e] = total


def work_size(int q):
    """Return the length of the work array of `solve_units`."""
    return CHUNK * (q + 1) + q * q


def solve_units(
    Py_ssize_t start, Py_ssize_t end,
    const int64_t[::1] indptr, const int[::1] index, const int[::1] cell,
    const double[::1] weight,        # in (m,) or empty
    const double[::1] prec_own,      # in (n,)
    const double[::1] prec_other,    # in (n_other,)
    const double[::1] y,             # in (m,)
    const double[:, ::1] own,        # in (n, p)        y is explained by own_u . other_v ...
    const double[:, ::1] other,      # in (n_other, p)
    const double[:, ::1] regressor,  # in (n_other, q)  ... + coefficient_u . regressor_v
    const double[::1] prior,         # in (q,) prior precision of the coefficients
    const double[::1] prior_linear,  # in (q,) prior precision times prior mean
    double[:, ::1] mean,             # out (n, q)
    double[:, ::1] deviation,        # in-out (n, q) standard normals; the draw is mean + deviation
    double[::1] quadratic,           # out (n,) sum w t^2 - b' Q^-1 b, t = y less what is explained
    double[::1] work,
):
    """Draw the regression coefficients of each unit from their normal conditional.

        Q = diag(prior) + sum w h h',   b = prior_linear + sum w t h,   N(Q^-1 b, Q^-1)

    h the regressors of a cell. O(q^2) a cell, O(q^3) a unit. Return 0, or 1 + the first unit
    whose Q is not positive definite.
    """
    cdef int q = <int> regressor.shape[1], p = <int> own.shape[1]
    cdef int n, k, info = 0, one = 1
    cdef Py_ssize_t u
    cdef int64_t e, c, v
    cdef bint weighted = weight.shape[0] > 0, by_row = cell.shape[0] == 0
    cdef double w, t, total, root, unit = 1.0
    cdef double* H = &work[0]
    cdef double* target = H + CHUNK * q
    cdef double* Q = target + CHUNK
    cdef double* b
    cdef const double* h
    with nogil:
        for u in range(start, end):
            b = &mean[u, 0] if q else NULL
            memset(Q, 0, q * q * sizeof(double))
            for k in range(q):
                b[k] = prior_linear[k]
            total = 0.0
            n = 0
            for e in range(indptr[u], indptr[u + 1]):
                c = e if by_row else cell[e]
                v = index[e]
                w = prec_own[u] * prec_other[v]
                if weighted:
                    w *= weight[c]
                t = y[c]
                for k in range(p):
                    t -= own[u, k] * other[v, k]
                total += w * t * t
                if q == 0:
                    continue
                root = sqrt(w)
                h = &regressor[v, 0]
                for k in range(q):
                    H[n * q + k] = root * h[k]
                target[n] = root * t
                n += 1
                if n == CHUNK:
                    dsyrk("L", "N", &q, &n, &unit, H, &q, &unit, Q, &q)
                    dgemv("N", &q, &n, &unit, H, &q, target, &one, &unit, b, &one)
                    n = 0
            if q == 0:  # nothing to draw: all that is left over stays
                quadratic[u] = total
                continue
            if n > 0:
                dsyrk("L", "N", &q, &n, &unit, H, &q, &unit, Q, &q)
                dgemv("N", &q, &n, &unit, H, &q, target, &one, &unit, b, &one)
            for k in range(q):
                Q[k * q + k] += prior[k]
            dpotrf("L", &q, Q, &q, &info)
            if info != 0:
                break
            dtrsv("L", "N", "N", &q, Q, &q, b, &one)
            for k in range(q):
                total -= b[k] * b[k]
            quadratic[u] = total
            dtrsv("L", "T", "N", &q, Q, &q, b, &one)
            dtrsv("L", "T", "N", &q, Q, &q, &deviation[u, 0], &one)
    return 0 if info == 0 else <int> u + 1
