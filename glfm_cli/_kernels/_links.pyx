"""Kernels of the links of ordinal and count columns: cells between cut points.

Sources: [GLFM] sections 3.1.2 and 4.2; Cowles 1996 for the thresholds.
"""

from libc.math cimport INFINITY, exp, isnan, log, log1p
from numpy.random cimport bitgen_t
from scipy.special.cython_special cimport log_ndtr, ndtr

cdef extern from "_normal.h" nogil:
    double glfm_log_intervals(int n, const double* a, const double* b, int* far) noexcept

cdef extern from "_vector.h" nogil:
    void GLFM_PREFETCH(const void* p) noexcept
    int GLFM_AHEAD

from glfm_cli._kernels._variates cimport bitgen_of, placed, standard_truncated_normals

cdef enum:
    CHUNK = 256  # cells that are looked at together

include "_ndtr.pxi"


cdef inline double log_interval(double a, double b) noexcept nogil:
    """Return log(Phi(b) - Phi(a)) for a < b, without loss in either tail."""
    cdef double mid, log_a, log_b, unused
    if a > 0.0:
        mid = a
        a = -b
        b = -mid
    if b - a < 1e-5:
        mid = 0.5 * (a + b)
        return log(b - a) - 0.5 * mid * mid - LOG_SQRT_2PI
    if b > -6.0:
        return log(fast_ndtr(b, &unused) - (fast_ndtr(a, &unused) if a > -EDGE else ndtr(a)))
    log_b = log_ndtr(b)
    log_a = log_ndtr(a) if a > -1e150 else -INFINITY
    return log_b + log1p(-exp(log_a - log_b))


def gather(const double[:] x, double[::1] out):
    """Copy a column of a matrix of many rows, which are fetched ahead. O(n)."""
    cdef Py_ssize_t n
    with nogil:
        for n in range(x.shape[0]):
            if n + 2 * GLFM_AHEAD < x.shape[0]:
                GLFM_PREFETCH(&x[n + 2 * GLFM_AHEAD])
            out[n] = x[n]


def sum_log_interval(const double[:] x, const double[:] eta, const double[::1] cuts):
    """Return the sum over observed n of log(Phi(cuts[x_n + 1] - eta_n) - Phi(cuts[x_n] - eta_n)).

    The log likelihood of an ordinal column with y integrated out. O(n), some nanoseconds each.

    Parameters
    ----------
    x : (n,) float64, in
        Level codes 0..R-1, NaN where missing.
    eta : (n,) float64, in
    cuts : (R + 1,) float64, in
        -inf, the thresholds, inf.
    """
    cdef Py_ssize_t n = 0, r
    cdef int m, i, far
    cdef double total = 0.0, part
    cdef double[CHUNK] a, b
    with nogil:
        while n < x.shape[0]:
            m = 0
            while n < x.shape[0] and m < CHUNK:
                if not isnan(x[n]):
                    r = <Py_ssize_t>x[n]
                    a[m] = cuts[r] - eta[n]
                    b[m] = cuts[r + 1] - eta[n]
                    m += 1
                n += 1
            for i in range(m, CHUNK):  # p = 1
                a[i] = -INFINITY
                b[i] = INFINITY
            far = 0
            part = glfm_log_intervals((m + 7) // 8 * 8, a, b, &far)
            if far:
                part = 0.0
                for i in range(m):
                    part += log_interval(a[i], b[i])
            total += part
    return total


def fill_between_cuts(
    const double[:] x, const double[:] eta, double sd, const double[::1] cuts, rng, double[:, :] y
):
    """Draw y_n ~ N(eta_n, sd^2) given cuts[x_n] < y_n < cuts[x_n + 1], for observed n.

    For ordinal and count columns. O(n), some 10 ns a draw.

    Parameters
    ----------
    x : (n,) float64, in
        Integers from 0 to len(cuts) - 2, NaN where missing.
    eta : (n,) float64, in
    sd : float
    cuts : (m,) float64, in
        Increasing; the first and last may be infinite.
    rng : numpy.random.Generator
    y : (n, 1) float64, in-out, any stride
        Observed rows are overwritten.

    Returns
    -------
    bool
        False as soon as an integer is larger than that: some rows are then not drawn.
    """
    cdef Py_ssize_t n = 0, k, r, start
    cdef int m, i
    cdef bint fit = True
    cdef double[CHUNK] a, b, u, z
    cdef double inv = 1.0 / sd
    cdef bitgen_t* bitgen = bitgen_of(rng)
    with rng.bit_generator.lock, nogil:
        while n < x.shape[0]:
            start, m = n, 0
            while n < x.shape[0] and m < CHUNK:
                if n + GLFM_AHEAD < x.shape[0]:
                    GLFM_PREFETCH(&eta[n + GLFM_AHEAD])
                    GLFM_PREFETCH(&y[n + GLFM_AHEAD, 0])
                if not isnan(x[n]):
                    if not x[n] < cuts.shape[0] - 1:
                        fit = False
                        break
                    r = <Py_ssize_t>x[n]
                    a[m] = (cuts[r] - eta[n]) * inv
                    b[m] = (cuts[r + 1] - eta[n]) * inv
                    m += 1
                n += 1
            if not fit:
                break
            standard_truncated_normals(bitgen, m, a, b, u, z)
            i = 0
            for k in range(start, n):
                if not isnan(x[k]):
                    r = <Py_ssize_t>x[k]
                    y[k, 0] = placed(bitgen, z[i], eta[k], sd, cuts[r], cuts[r + 1])
                    i += 1
    return fit


def fill_between(const double[:] x, const double[::1] cuts, double[:, :] lower, double[:, :] upper):
    """Set lower_n = cuts[x_n] and upper_n = cuts[x_n + 1] for observed n. O(n).

    Parameters
    ----------
    x : (n,) float64, in
        Integers from 0 to len(cuts) - 2, NaN where missing.
    cuts : (m,) float64, in
    lower, upper : (n, 1) float64, in-out, any stride
        Observed rows are overwritten.

    Returns
    -------
    bool
        False as soon as an integer is larger than that: some rows are then not set.
    """
    cdef Py_ssize_t n, r
    cdef bint fit = True
    with nogil:
        for n in range(x.shape[0]):
            if n + GLFM_AHEAD < x.shape[0]:
                GLFM_PREFETCH(&lower[n + GLFM_AHEAD, 0])
                GLFM_PREFETCH(&upper[n + GLFM_AHEAD, 0])
            if not isnan(x[n]):
                if not x[n] < cuts.shape[0] - 1:
                    fit = False
                    break
                r = <Py_ssize_t>x[n]
                lower[n, 0] = cuts[r]
                upper[n, 0] = cuts[r + 1]
    return fit


def normal_cdf(const double[:] x, double[:] out):
    """Fill out with the kernels' Phi(x), for tests."""
    cdef Py_ssize_t n
    cdef double unused
    for n in range(x.shape[0]):
        out[n] = fast_ndtr(x[n], &unused)
