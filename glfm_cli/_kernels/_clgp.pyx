"""Expected log likelihoods of cells whose latent number is normal, with their derivatives.

A cell's latent f ~ N(mean, var). A rule with nodes t_i and weights w_i for N(0, 1), with the more of
them the wider f is beside the noise, gives

    l = sum_i w_i log p(x | f_i),    f_i = mean + sqrt(var) t_i
    g1 = dl/dmean = sum_i w_i l'(f_i),    g2 = dl/dvar = sum_i w_i l'(f_i) t_i / (2 sqrt(var))

which are the derivatives of the rule itself. Every function adds l to `value`, and overwrites g1, g2
and the curvature, which is never negative: at least the mean of -l''. Rows are stacked by samples:
row i of mean belongs to cell i modulo the number of cells; NaN cells are missing, and have zeros.
"""

import numpy as np

from libc.math cimport INFINITY, exp, isnan, log, log1p, sqrt
from scipy.special.cython_special cimport log_ndtr, ndtr

include "_ndtr.pxi"

cdef double TAIL = -8.0  # below it probabilities are kept as logs
cdef int N_RULES = 4
cdef int SIZES[4]  # nodes of each rule
cdef double UP_TO[4]  # variance, over that of the noise, up to which a rule is used
cdef double NODES[4][64]
cdef double WEIGHTS[4][64]
cdef double NARROW = 1e-9  # an interval narrower than this is a point: its ends have no digits left


def _fill_rules():
    """Fill the rules: of log Phi and of log-logistic functions, errors below 1e-7 up to ratio 1."""
    cdef int k, i
    for k, (size, up_to) in enumerate(((8, 0.25), (12, 1.0), (20, 4.0), (64, np.inf))):
        SIZES[k], UP_TO[k] = size, up_to
        nodes, weights = np.polynomial.hermite_e.hermegauss(size)
        for i in range(size):
            NODES[k][i], WEIGHTS[k][i] = nodes[i], weights[i] / np.sqrt(2.0 * np.pi)


_fill_rules()


cdef inline int rule_of(double ratio) noexcept nogil:
    """Return the rule for a variance over that of the noise."""
    cdef int k = 0
    while k < N_RULES - 1 and ratio > UP_TO[k]:
        k += 1
    return k


cdef inline double interval(double a, double b, double* ra, double* rb) noexcept nogil:
    """Return log(Phi(b) - Phi(a)), with ra = phi(a) / p and rb = phi(b) / p."""
    cdef double p, pdf_a = 0.0, pdf_b = 0.0, log_p, cdf_a = 0.0, cdf_b = 1.0
    cdef double log_b, swap
    cdef bint flip = a + b > 0.0  # of the mirror image both ends have a small Phi
    if flip:
        swap = -b
        b = -a
        a = swap
    if b < TAIL:
        log_b = log_ndtr(b)
        log_p = log_b
        if a > -INFINITY:
            log_p += log1p(-exp(log_ndtr(a) - log_b))
            ra[0] = exp(-0.5 * a * a - LOG_SQRT_2PI - log_p)
        else:
            ra[0] = 0.0
        rb[0] = exp(-0.5 * b * b - LOG_SQRT_2PI - log_p)
    else:
        if a > -INFINITY:
            cdf_a = fast_ndtr(a, &pdf_a)
        if b < INFINITY:
            cdf_b = fast_ndtr(b, &pdf_b)
        p = cdf_b - cdf_a
        log_p = log(p)
        ra[0] = pdf_a / p
        rb[0] = pdf_b / p
    if flip:
        swap = ra[0]
        ra[0] = rb[0]
        rb[0] = swap
    return log_p


cdef struct Cell:
    double value, g1, g2, d_low, d_high, d_log_s2


cdef void integrate(
    double low, double high, double s, double mean, double sd, Cell* c,
) noexcept nogil:
    """Integrate log P(low < f + s z < high); derivatives by both ends and by log s^2 as well."""
    cdef int i, k
    cdef double f, a, b, ra, rb, w, slope, inv = 1.0 / s
    k = rule_of(sd * sd * inv * inv)
    c.value = c.g1 = c.g2 = c.d_low = c.d_high = c.d_log_s2 = 0.0
    for i in range(SIZES[k]):
        f = mean + sd * NODES[k][i]
        a, b = (low - f) * inv, (high - f) * inv
        w = WEIGHTS[k][i]
        c.value += w * interval(a, b, &ra, &rb)
        slope = w * (ra - rb) * inv
        c.g1 += slope
        c.g2 += slope * NODES[k][i]
        c.d_low -= w * ra * inv
        c.d_high += w * rb * inv
        if a > -INFINITY:
            c.d_log_s2 += 0.5 * w * a * ra
        if b < INFINITY:
            c.d_log_s2 -= 0.5 * w * b * rb
    c.g2 /= 2.0 * sd


def add_numbers(
    const double[::1] lower, const double[::1] upper, const double[:] mean, const double[:] var,
    double s2, double[::1] value, double[:] g1, double[:] g2, double[:] curvature,
):
    """Add what points and intervals of y ~ N(f, s2) say. O(n) points, O(20 n) intervals.

    A point, upper = lower, has the closed form -(log 2 pi s2 + ((y - mean)^2 + var) / s2) / 2.

    Returns
    -------
    float
        The derivative of the sum of all l by log s2.
    """
    cdef Py_ssize_t i, n, N = lower.shape[0]
    cdef double e, total = 0.0, s = sqrt(s2), log_norm = LOG_SQRT_2PI + 0.5 * log(s2)
    cdef Cell cell
    with nogil:
        for i in range(mean.shape[0]):
            n = i % N
            if isnan(lower[n]):
                g1[i] = g2[i] = curvature[i] = 0.0
            elif upper[n] - lower[n] < NARROW:
                e = lower[n] - mean[i]
                value[i] -= log_norm + 0.5 * (e * e + var[i]) / s2
                total += 0.5 * ((e * e + var[i]) / s2 - 1.0)
                g1[i] = e / s2
                g2[i] = -0.5 / s2
                curvature[i] = 1.0 / s2
            else:
                integrate(lower[n], upper[n], s, mean[i], sqrt(var[i]), &cell)
                value[i] += cell.value
                g1[i], g2[i] = cell.g1, cell.g2
                curvature[i] = max(-2.0 * cell.g2, 0.0)
                total += cell.d_log_s2
    return total


def add_ordered(
    const double[::1] code, const double[::1] theta, const double[:] mean, const double[:] var,
    double[::1] value, double[:] g1, double[:] g2, double[:] curvature, double[::1] d_theta,
):
    """Add what levels say: code = number of the thresholds theta below y ~ N(f, 1). O(20 n).

    d_theta : (R - 1,) is added to: the derivatives of the sum of all l by the thresholds
    """
    cdef Py_ssize_t i, n, r, N = code.shape[0], last = theta.shape[0]
    cdef double low, high
    cdef Cell cell
    with nogil:
        for i in range(mean.shape[0]):
            n = i % N
            if isnan(code[n]):
                g1[i] = g2[i] = curvature[i] = 0.0
                continue
            r = <Py_ssize_t>code[n]
            low = theta[r - 1] if r > 0 else -INFINITY
            high = theta[r] if r < last else INFINITY
            integrate(low, high, 1.0, mean[i], sqrt(var[i]), &cell)
            value[i] += cell.value
            g1[i], g2[i] = cell.g1, cell.g2
            curvature[i] = max(-2.0 * cell.g2, 0.0)
            if r > 0:
                d_theta[r - 1] += cell.d_low
            if r < last:
                d_theta[r] += cell.d_high


def add_binary(
    const double[::1] code, const double[:] mean, const double[:] var, double[::1] value,
    double[:] g1, double[:] g2, double[:] curvature,
):
    """Add what two levels say: P(1) = 1 / (1 + exp(-f)), P(0) = 1 - P(1). O(20 n)."""
    cdef Py_ssize_t i, n, N = code.shape[0]
    cdef int j, k
    cdef double f, e, p, total, first, second, sd, slope
    with nogil:
        for i in range(mean.shape[0]):
            n = i % N
            if isnan(code[n]):
                g1[i] = g2[i] = curvature[i] = 0.0
                continue
            k = rule_of(var[i])
            sd = sqrt(var[i])
            total = first = second = 0.0
            for j in range(SIZES[k]):
                f = mean[i] + sd * NODES[k][j]
                e = exp(-abs(f))
                p = 1.0 / (1.0 + e)
                p = p if f > 0.0 else 1.0 - p
                total += WEIGHTS[k][j] * (code[n] * f - (max(f, 0.0) + log1p(e)))
                slope = WEIGHTS[k][j] * (code[n] - p)
                first += slope
                second += slope * NODES[k][j]
            value[i] += total
            g1[i] = first
            g2[i] = second / (2.0 * sd)
            curvature[i] = max(-2.0 * g2[i], 0.0)


def add_levels(
    const double[::1] code, const double[:, :] mean, const double[:, :] var,
    const double[:, :, ::1] normals, double[:, ::1] f, double[::1] value, double[:, :] g1,
    double[:, :] g2, double[:, :] curvature,
):
    """Add what K + 1 levels say, P(k) = exp(f_k) / (1 + sum_j exp(f_j)), f of level 0 being 0.

    The integral over f is the mean over the E draws mean + sd z and mean - sd z. O(n E K).

    normals : (n, E / 2, K), z;  f : (3, K) scratch
    curvature : the mean of p_k (1 - p_k) + sum_j p_k p_j over the other levels but 0: a diagonal
        matrix of these is above minus the matrix of second derivatives [Gershgorin]
    """
    cdef Py_ssize_t i, j, k, n, N = code.shape[0], K = mean.shape[1], pairs = normals.shape[1]
    cdef int side
    cdef double top, total, z, p, reference, share = 0.5 / pairs
    with nogil:
        for i in range(mean.shape[0]):
            n = i % N
            for k in range(K):
                g1[i, k] = g2[i, k] = curvature[i, k] = 0.0
            if isnan(code[n]):
                continue
            for k in range(K):
                f[1, k] = sqrt(var[i, k])
            for j in range(pairs):
                for side in range(2):
                    top = 0.0
                    for k in range(K):
                        z = normals[i, j, k] if side == 0 else -normals[i, j, k]
                        f[0, k] = mean[i, k] + f[1, k] * z
                        top = max(top, f[0, k])
                    if code[n] > 0.0:
                        value[i] += share * f[0, <Py_ssize_t>code[n] - 1]
                    total = exp(-top)
                    for k in range(K):
                        f[2, k] = exp(f[0, k] - top)
                        total += f[2, k]
                    value[i] -= share * (top + log(total))
                    reference = exp(-top) / total
                    for k in range(K):
                        z = normals[i, j, k] if side == 0 else -normals[i, j, k]
                        p = f[2, k] / total
                        curvature[i, k] += share * p * max(2.0 - 2.0 * p - reference, 0.0)
                        p = (1.0 if code[n] == k + 1 else 0.0) - p
                        g1[i, k] += share * p
                        g2[i, k] += share * p * z / (2.0 * f[1, k])
