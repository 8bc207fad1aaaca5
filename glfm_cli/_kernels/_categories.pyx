"""Kernels of categorical columns: the multinomial probit.

e    (R,)     means of the R utilities of a categorical cell, 0 for the reference level
s    (R,)     their standard deviations, 1 for the reference level
slot (R,)     the latent column of a level, -1 for the reference level
T             the observed level
h(t)          sum over j != T of log Phi((t - e_j) / s_j), concave in t

Source: [GLFM] sections 3.1.2 and 4.2.
"""

from libc.math cimport INFINITY, exp, fabs, floor, isfinite, isnan, log, log1p, sqrt
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_exponential, random_standard_normal
from scipy.special.cython_special cimport log_ndtr, ndtr

from glfm_cli._kernels._variates cimport bitgen_of, truncated_normal

cdef extern from "_vector.h" nogil:
    void GLFM_PREFETCH(const void* p) noexcept
    int GLFM_AHEAD

import numpy as np

cdef double INV_SQRT_2 = 0.7071067811865476

# The trapezoid rule: its step resolves the narrowest integrand (the largest of R utilities of sd 1
# grows narrower with R), its ends leave out 1e-13 below and 1e-11 above.
cdef double BELOW = 7.3
cdef double ABOVE = 6.8
cdef double MOST_NODES = 4096.0
cdef int FREE_TRIES = 10
# A probability below this is summed again around its own mode, on the log scale.
cdef double SMALL = 1e-7

include "_ndtr.pxi"


cdef inline double log_product(double y, const double* e, Py_ssize_t R, Py_ssize_t T) noexcept nogil:
    """Return h(y) with unit scales: one logarithm for many factors."""
    cdef double total = 0.0, product = 1.0, u, unused
    cdef Py_ssize_t j
    for j in range(R):
        if j == T:
            continue
        u = y - e[j]
        if u > 7.0:  # log Phi above -1.3e-12
            continue
        if u > -EDGE:
            product *= fast_ndtr(u, &unused)
            if product < 1e-200:
                total += log(product)
                product = 1.0
        else:
            total += log_ndtr(u)
    return total + log(product)


cdef inline double mills(double u) noexcept nogil:
    """Return phi(u) / Phi(u)."""
    cdef double pdf, cdf
    if u > -EDGE:
        cdf = fast_ndtr(u, &pdf)
        return pdf / cdf
    if u > -50.0:
        return exp(-0.5 * u * u - LOG_SQRT_2PI - log_ndtr(u))
    return -u - 1.0 / u + 2.0 / (u * u * u)


cdef inline double mode(
    const double* e, const double* s, Py_ssize_t R, Py_ssize_t T, double tolerance,
    double* slope, double* curvature
) noexcept nogil:
    """Return t near the mode of h(t) - (t - e_T)^2 / (2 s_T^2), with h'(t) and -h''(t).

    Newton's method on an increasing concave function, from below: it converges from any start
    without a bracket. Usually three to five passes over the levels.
    """
    cdef double t = -INFINITY, step, m, u, bend
    cdef double inv_var = 1.0 / (s[T] * s[T])
    cdef Py_ssize_t j
    cdef int i
    for j in range(R):
        t = max(t, e[j])
    for i in range(60):
        slope[0] = 0.0
        curvature[0] = 0.0
        for j in range(R):
            if j != T:
                u = (t - e[j]) / s[j]
                if u > 7.0:  # no pull left: below 1e-11
                    continue
                m = mills(u)
                bend = m * (u + m)  # in (0, 1), but for rounding
                slope[0] += m / s[j]
                curvature[0] += min(max(bend, 0.0), 1.0) / (s[j] * s[j])
        step = (slope[0] - (t - e[T]) * inv_var) / (inv_var + curvature[0])
        # The gap of the mode's equation, not the step: many levels bend h so that steps are short.
        if fabs(step) * (1.0 + curvature[0] / inv_var) < tolerance:
            return t
        t += step
    return t


cdef inline double winner(
    bitgen_t* bitgen, const double* e, const double* s, Py_ssize_t R, Py_ssize_t T
) noexcept nogil:
    """Draw the largest utility y_T given that level T won and given nothing of the others.

    Its density is N(y; e_T, 1) exp(h(y)), and h lies below its tangent at any point y0: propose
    from N(e_T + h'(y0), 1), accept with exp(h(y) - h(y0) - h'(y0) (y - y0)).
    """
    cdef double slope, curvature, y0, h0, y
    # Any tangent gives an exact draw; one within half a unit of the mode costs few more tries.
    y0 = mode(e, s, R, T, 0.4, &slope, &curvature)
    h0 = log_product(y0, e, R, T)
    while True:
        y = e[T] + slope + random_standard_normal(bitgen)
        if random_standard_exponential(bitgen) >= h0 + slope * (y - y0) - log_product(y, e, R, T):
            return y


cdef inline bint simulate_win(
    bitgen_t* bitgen, const double* e, Py_ssize_t R, Py_ssize_t T, double* utility
) noexcept nogil:
    """Draw all utilities freely; true when T won, and then they have the law given that."""
    cdef Py_ssize_t j
    cdef double top = e[T] + random_standard_normal(bitgen)
    for j in range(R):
        if j != T:
            utility[j] = e[j] + random_standard_normal(bitgen)
            if utility[j] > top:
                return False
    utility[T] = top
    return True


def fill_categorical(
    const double[:] x, const double[:, :] eta, const Py_ssize_t[::1] slot, rng, double[:, :] y
):
    """Draw the utilities of observed cells jointly given their levels.

    A few free draws are tried, which is enough where the observed level is a likely one; then
    the winner's utility first and the others below it. Both have the same, exact law. The
    reference level's utility is drawn where it matters and not kept. O(n R).

    Parameters
    ----------
    x : (n,) float64, in
        Level codes, NaN where missing.
    eta : (n, R - 1) float64, in
    slot : (R,) intp, in
    rng : numpy.random.Generator
    y : (n, R - 1) float64, in-out, any stride
        Observed rows are overwritten.

    Returns
    -------
    int
        -1, or the first row whose eta is not finite (nothing is drawn from it on).
    float
        Sum of squares of the reference level's utilities.
    """
    cdef Py_ssize_t n, j, T, R = slot.shape[0], bad = -1
    cdef double reference = 0.0
    cdef double[::1] e = np.zeros(R), s = np.ones(R), utility = np.empty(R)
    cdef double top, difference
    cdef int tries
    cdef bitgen_t* bitgen = bitgen_of(rng)
    with rng.bit_generator.lock, nogil:
        for n in range(x.shape[0]):
            if n + GLFM_AHEAD < x.shape[0]:
                GLFM_PREFETCH(&eta[n + GLFM_AHEAD, 0])
                GLFM_PREFETCH(&y[n + GLFM_AHEAD, 0])
            if isnan(x[n]):
                continue
            T = <Py_ssize_t>x[n]
            for j in range(R):
                if slot[j] >= 0:
                    e[j] = eta[n, slot[j]]
                    if not isfinite(e[j]):
                        bad = n
            if bad >= 0:
                break
            if R == 2:
                # The difference d of the two utilities is N(eta, 2) of known sign;
                # given d, the one that is kept is N(eta + (d - eta) / 2, 1 / 2).
                if slot[T] >= 0:
                    difference = truncated_normal(bitgen, eta[n, 0], 1.0 / INV_SQRT_2, 0.0, INFINITY)
                else:
                    difference = truncated_normal(bitgen, eta[n, 0], 1.0 / INV_SQRT_2, -INFINITY, 0.0)
                y[n, 0] = (0.5 * (eta[n, 0] + difference)
                           + INV_SQRT_2 * random_standard_normal(bitgen))
                reference += (y[n, 0] - difference) * (y[n, 0] - difference)
                continue
            for tries in range(FREE_TRIES):
                if simulate_win(bitgen, &e[0], R, T, &utility[0]):
                    break
            else:
                top = winner(bitgen, &e[0], &s[0], R, T)
                for j in range(R):
                    utility[j] = truncated_normal(bitgen, e[j], 1.0, -INFINITY, top)
                utility[T] = top
            for j in range(R):
                if slot[j] >= 0:
                    y[n, slot[j]] = utility[j]
                else:
                    reference += utility[j] * utility[j]
    return bad, reference


def fill_below_winner(
    const double[:] x, const double[:, :] y, const Py_ssize_t[::1] slot, rng,
    double[:, :] lower, double[:, :] upper
):
    """Bound the utilities of observed cells by the largest, which becomes a point. O(n R).

    Where the reference level won its utility, which is not kept, is drawn anew given the others.
    With two levels the bounds are those of the utilities' difference: (0, inf) or (-inf, 0).

    Parameters
    ----------
    x : (n,) float64, in
        Level codes, NaN where missing.
    y : (n, R - 1) float64, in
        Utilities; the largest is that of the observed level, or all lie below the reference's.
    slot : (R,) intp, in
    rng : numpy.random.Generator
    lower, upper : (n, R - 1) float64, in-out, any stride
        Observed rows are overwritten.
    """
    cdef Py_ssize_t n, j, T, R = slot.shape[0]
    cdef double top
    cdef bitgen_t* bitgen = bitgen_of(rng)
    with rng.bit_generator.lock, nogil:
        for n in range(x.shape[0]):
            if n + GLFM_AHEAD < x.shape[0]:
                GLFM_PREFETCH(&y[n + GLFM_AHEAD, 0])
                GLFM_PREFETCH(&lower[n + GLFM_AHEAD, 0])
                GLFM_PREFETCH(&upper[n + GLFM_AHEAD, 0])
            if isnan(x[n]):
                continue
            T = <Py_ssize_t>x[n]
            if R == 2:
                lower[n, 0] = 0.0 if slot[T] >= 0 else -INFINITY
                upper[n, 0] = INFINITY if slot[T] >= 0 else 0.0
                continue
            if slot[T] >= 0:
                top = y[n, slot[T]]
            else:
                top = y[n, 0]
                for j in range(1, R - 1):
                    top = max(top, y[n, j])
                top = truncated_normal(bitgen, 0.0, 1.0, top, INFINITY)
            for j in range(R - 1):
                lower[n, j] = -INFINITY
                upper[n, j] = top
            if slot[T] >= 0:
                lower[n, slot[T]] = top


cdef inline void probabilities_of_row(
    const double* e, const double* s, double* scratch, Py_ssize_t R, double* out
) noexcept nogil:
    """Fill out with P(x = r), r = 0..R-1: one grid for all levels; scratch holds 3 R doubles.

    The product over j != r is the product before r times the product after r: no division.
    """
    cdef double low = -INFINITY, high = -INFINITY, t, step, product, total = 0.0
    cdef double* inv_s = scratch
    cdef double* cdf = scratch + R
    cdef double* pdf = scratch + 2 * R
    cdef Py_ssize_t i, j, n_nodes
    step = 0.45 if R <= 4 else 0.35 if R <= 20 else 0.25
    for j in range(R):
        out[j] = 0.0
        inv_s[j] = 1.0 / s[j]
        low = max(low, e[j] - BELOW * s[j])
        high = max(high, e[j] + ABOVE * s[j])
    n_nodes = <Py_ssize_t>min(floor((high - low) / step) + 2.0, MOST_NODES)
    step = (high - low) / (n_nodes - 1)
    for i in range(n_nodes):
        t = low + i * step
        product = 1.0
        for j in range(R):
            cdf[j] = fast_ndtr((t - e[j]) * inv_s[j], &pdf[j])
            pdf[j] *= product * inv_s[j]
            product *= cdf[j]
        if product > 1e-60:
            product = 1.0
            for j in range(R - 1, -1, -1):
                out[j] += pdf[j] * product
                product *= cdf[j]
    for j in range(R):
        total += out[j]
    for j in range(R):
        out[j] /= total


cdef inline void load_row(
    const double[:, :] eta, double var, const Py_ssize_t[::1] slot, Py_ssize_t n,
    double[::1] e, double[::1] s
) noexcept nogil:
    """Fill the means and scales of all R utilities of row n."""
    cdef Py_ssize_t j
    cdef double sd = sqrt(var)
    for j in range(slot.shape[0]):
        if slot[j] >= 0:
            e[j] = eta[n, slot[j]]
            s[j] = sd
        else:
            e[j] = 0.0
            s[j] = 1.0


def fill_probabilities(
    const double[:, :] eta, const double[:] var, const Py_ssize_t[::1] slot, double[:, ::1] out
):
    """Fill out with P(x = r) = integral of N(t; e_r, s_r^2) prod_{j != r} Phi((t - e_j)/s_j) dt.

    The trapezoid rule on one grid for all levels, which for such integrands converges faster than
    any power of the step: absolute error below 1e-10. O(n R G), G from 32 to 57 nodes for var = 1.

    Parameters
    ----------
    eta : (n, R - 1) float64, in
    var : (n,) float64, in
        Variance of the utilities that have a latent column, >= 1; the reference level's is 1.
    slot : (R,) intp, in
    out : (n, R) float64, out
        Rows sum to 1; NaN where eta is not finite.
    """
    cdef Py_ssize_t n, j, R = slot.shape[0]
    cdef double[::1] e = np.empty(R), s = np.empty(R), scratch = np.empty(3 * R)
    cdef double check
    with nogil:
        for n in range(out.shape[0]):
            load_row(eta, var[n], slot, n, e, s)
            check = 0.0
            for j in range(R):
                check += e[j] * 0.0 + s[j] * 0.0
            if check == 0.0:
                probabilities_of_row(&e[0], &s[0], &scratch[0], R, &out[n, 0])
            else:
                out[n, :] = check


cdef inline double log_density_at(
    double t, const double* e, const double* s, Py_ssize_t R, Py_ssize_t T
) noexcept nogil:
    """Return h(t) + log N(t; e_T, s_T^2)."""
    cdef double u = (t - e[T]) / s[T], total
    cdef Py_ssize_t j
    total = -0.5 * u * u - LOG_SQRT_2PI - log(s[T])
    for j in range(R):
        if j != T:
            total += log_ndtr((t - e[j]) / s[j])
    return total


cdef inline double log_tail_probability(
    const double* e, const double* s, Py_ssize_t R, Py_ssize_t T
) noexcept nogil:
    """Return log P(x = T), however small: the integrand is log-concave; sum around its mode."""
    cdef double slope, curvature, centre, step, peak, term, total = 1.0
    cdef int side, i
    centre = mode(e, s, R, T, 1e-6, &slope, &curvature)
    step = 0.25 / sqrt(curvature + 1.0 / (s[T] * s[T]))
    peak = log_density_at(centre, e, s, R, T)
    for side in range(-1, 2, 2):
        for i in range(1, 4000):
            term = log_density_at(centre + side * i * step, e, s, R, T) - peak
            if not term > -40.0:
                break
            total += exp(term)
    return peak + log(total * step)


cdef inline double level_probability(
    const double* e, const double* s, Py_ssize_t R, Py_ssize_t T
) noexcept nogil:
    """Return P(x = T) by the trapezoid rule where its integrand lives; 0 when that is nowhere."""
    cdef double low = e[T] - BELOW * s[T], high = e[T] + ABOVE * s[T]
    cdef double step = 0.45 if R <= 4 else 0.35 if R <= 20 else 0.25
    cdef double t, u, product, total = 0.0, unused
    cdef Py_ssize_t i, j, n_nodes
    for j in range(R):
        low = max(low, e[j] - BELOW * s[j])
    if not low < high:
        return 0.0
    step *= min(s[T], 1.0)
    n_nodes = <Py_ssize_t>(floor((high - low) / step) + 2.0)
    if n_nodes > MOST_NODES:
        return 0.0
    step = (high - low) / (n_nodes - 1)
    for i in range(n_nodes):
        t = low + i * step
        u = (t - e[T]) / s[T]
        product = exp(-0.5 * u * u)
        for j in range(R):
            if j != T and product > 1e-18:
                product *= fast_ndtr((t - e[j]) / s[j], &unused)
        total += product
    return total * step * INV_SQRT_2PI / s[T]


def fill_log_probability(
    const double[:] x, const double[:, :] eta, const double[:] var, const Py_ssize_t[::1] slot,
    double[::1] out
):
    """Fill out with log P(x_n), accurate in the far tails. Arguments as `fill_probabilities`."""
    cdef Py_ssize_t n, T, R = slot.shape[0]
    cdef double[::1] e = np.empty(R), s = np.empty(R)
    cdef double p
    with nogil:
        for n in range(x.shape[0]):
            T = <Py_ssize_t>x[n]
            load_row(eta, var[n], slot, n, e, s)
            p = level_probability(&e[0], &s[0], R, T)
            if p > SMALL:
                out[n] = log(p)
            else:
                out[n] = log_tail_probability(&e[0], &s[0], R, T)
