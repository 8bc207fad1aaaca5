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
from scipy.linalg.cython_blas cimport dtrsv

cdef extern from "_vector.h" nogil:
    enum: GLFM_LANES

cdef extern from "_gram.h" nogil:
    void glfm_gather(int n, const int* index, const double* a, int q, const double* x, int ld,
                     double* H) noexcept
    void glfm_add_products(int n, int ld, const double* H, double* Q) noexcept
    int glfm_factor(int q, int ld, double* Q) noexcept

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


cdef int padded(int q) noexcept nogil:
    """Return the length of a row of q regressors and a target, a multiple of GLFM_LANES."""
    return (q + GLFM_LANES) & -GLFM_LANES


def work_size(int q):
    """Return the length of the work array of `solve_units`."""
    return CHUNK * (padded(q) + 1) + padded(q) * padded(q)


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
    cdef int q = <int> regressor.shape[1], p = <int> own.shape[1], ld = padded(q)
    cdef int n, k, i, info = 0, one = 1
    cdef Py_ssize_t u
    cdef int64_t e, end_of_chunk, c, v
    cdef bint weighted = weight.shape[0] > 0, by_row = cell.shape[0] == 0
    cdef double w, t, total
    cdef double* H = &work[0]    # rows [root w h, root w t]
    cdef double* root = H + CHUNK * ld
    cdef double* Q = root + CHUNK  # the precision, b in column q
    cdef double* b
    with nogil:
        memset(H, 0, CHUNK * ld * sizeof(double))
        for u in range(start, end):
            memset(Q, 0, ld * ld * sizeof(double))
            total = 0.0
            e = indptr[u]
            while e < indptr[u + 1]:
                end_of_chunk = min(e + CHUNK, indptr[u + 1])
                n = <int> (end_of_chunk - e)
                for k in range(n):
                    c = e + k if by_row else cell[e + k]
                    v = index[e + k]
                    w = prec_own[u] * prec_other[v]
                    if weighted:
                        w *= weight[c]
                    t = y[c]
                    for i in range(p):
                        t -= own[u, i] * other[v, i]
                    total += w * t * t
                    root[k] = sqrt(w)
                    H[k * ld + q] = root[k] * t
                if q > 0:
                    glfm_gather(n, &index[e], root, q, &regressor[0, 0], ld, H)
                    glfm_add_products(n, ld, H, Q)
                e = end_of_chunk
            if q == 0:  # nothing to draw: all that is left over stays
                quadratic[u] = total
                continue
            for k in range(q):
                Q[k * ld + k] += prior[k]
                Q[k * ld + q] += prior_linear[k]
            info = glfm_factor(q, ld, Q)
            if info != 0:
                break
            b = &mean[u, 0]
            for k in range(q):
                b[k] = Q[k * ld + q]
                total -= b[k] * b[k]
            quadratic[u] = total
            # Rows of U are columns of L = U'.
            dtrsv("L", "T", "N", &q, Q, &ld, b, &one)
            dtrsv("L", "T", "N", &q, Q, &ld, &deviation[u, 0], &one)
    return 0 if info == 0 else <int> u + 1
