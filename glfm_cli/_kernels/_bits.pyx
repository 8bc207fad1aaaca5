"""Bits of the latent features given the weights, with pseudo-observations integrated out.

The row update of `_glfm` conditions on pseudo-observations. Where these are only known to lie in
an interval they were drawn with the row's bits in view, and many of them together hold the bits
where they are. Here the bits of a row are drawn from

    P(z_nk = 1 | rest)  prop. to  m_k / (N - m_k)  prod_s p(cell s | z_n B)

m_k the count in the other rows, p(cell) a normal density where lower = upper (a point), else
Phi((upper - eta) / sd) - Phi((lower - eta) / sd), and 1 where missing. A feature that only this
row has keeps its bit: dropping it would change the dimension, which is the row update's work.
Rows that are new to a fit (`shared` = 0) leave its counts as they are, and see N + 1 rows.
On why augmentation sticks: Papaspiliopoulos, Roberts and Skold, Statistical Science 22 (2007).

Cost: O(N K S) at some nanoseconds each, less where a flip is hopeless; no memory beyond `work`.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, exp, log, log1p
from libc.stdint cimport int64_t, uint8_t
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_normal, random_standard_uniform
from scipy.special.cython_special cimport log_ndtr

import numpy as np
from scipy.special import log_ndtr as log_ndtr_of

cdef extern from "_vector.h" nogil:
    void glfm_axpy(int n, double a, const double* x, double* y) noexcept

cdef extern from "_normal.h" nogil:
    int GLFM_KNOTS, GLFM_TERMS, GLFM_CDF_TERMS, GLFM_PER_UNIT
    double GLFM_EDGE
    double glfm_log_ndtr_table[]
    double glfm_ndtr_table[]
    double glfm_near_log_ndtr(double x) noexcept
    double glfm_sum_log_ndtr(int n, const double* t, double d, const double* slope, const int* col,
                             const double* w, double least, double* moved, int* far) noexcept
    int glfm_band_masses(int n, const double* a, const double* b, double d, const double* inv,
                         const int* col, const double* w, double* a_moved, double* b_moved,
                         double* p) noexcept

cdef double LOG_SQRT_2PI = 0.9189385332046727
cdef double NARROW = 1e-5  # intervals as narrow as this are taken as density times width
cdef double TINY = 1e-200  # products are turned into logarithms before they underflow


def _fill_tables():
    """Tabulate the Taylor coefficients of log Phi and Phi.

    With g = (log Phi)' = phi / Phi,  g' = -g (t + g);  and phi' = -t phi.
    """
    cdef int i, j
    t = np.arange(GLFM_KNOTS) / GLFM_PER_UNIT - GLFM_EDGE
    log_cdf = log_ndtr_of(t)
    phi = [np.exp(-0.5 * t * t - LOG_SQRT_2PI)]
    g = [phi[0] / np.exp(log_cdf)]
    for k in range(GLFM_CDF_TERMS):
        total = t * g[k] + (g[k - 1] if k else 0.0)
        for i in range(k + 1):
            total = total + g[i] * g[k - i]
        g.append(-total / (k + 1))
        phi.append(-(t * phi[k] + (phi[k - 1] if k else 0.0)) / (k + 1))
    for i in range(GLFM_KNOTS):
        glfm_log_ndtr_table[i * GLFM_TERMS] = log_cdf[i]
        for j in range(1, GLFM_TERMS):
            glfm_log_ndtr_table[i * GLFM_TERMS + j] = g[j - 1][i] / j
        glfm_ndtr_table[i * GLFM_CDF_TERMS] = np.exp(log_cdf[i])
        for j in range(1, GLFM_CDF_TERMS):
            glfm_ndtr_table[i * GLFM_CDF_TERMS + j] = phi[j - 1][i] / j


_fill_tables()


cdef struct Row:
    # The observed cells of a row by what is known of them, compact; the arguments of Phi of
    # the current bits, and with one bit flipped.
    int n_points
    int* point         # pseudo-column
    double* residual   # (y - eta) / sd
    double* weight     # 1 / sd
    int n_sides
    int* side
    double* t          # p = Phi(t)
    double* slope      # dt / deta
    double* t_moved
    int n_bands
    int* band
    double* a          # p = Phi(b) - Phi(a)
    double* b
    double* inv_sd
    double* a_moved
    double* b_moved
    double* mass


cdef inline double log_phi(double x) noexcept nogil:
    return glfm_near_log_ndtr(x) if x >= -GLFM_EDGE else log_ndtr(x)


cdef inline double log_band(double a, double b) noexcept nogil:
    """Return log(Phi(b) - Phi(a)), a < b, without loss in either tail."""
    cdef double mid, log_b
    if a > 0.0:
        mid = a
        a = -b
        b = -mid
    if b - a < NARROW:
        mid = 0.5 * (a + b)
        return log(b - a) - 0.5 * mid * mid - LOG_SQRT_2PI
    log_b = log_phi(b)
    return log_b + log1p(-exp(log_phi(a) - log_b))


cdef double points_gain(const Row* r, double d, const double* weights) noexcept nogil:
    """Return by how much the points' log density changes when eta moves by d weights."""
    cdef int i
    cdef double w, gain = 0.0
    for i in range(r.n_points):
        w = d * weights[r.point[i]] * r.weight[i]
        gain += w * (r.residual[i] - 0.5 * w)
    return gain


cdef double sides_moved(Row* r, double d, const double* weights, double least) noexcept nogil:
    """Return the log probability of the one-sided intervals when eta moves by d weights.

    Any number below `least` may stand for one below it.
    """
    cdef int i, far = 0
    cdef double total
    total = glfm_sum_log_ndtr(r.n_sides, r.t, d, r.slope, r.side, weights, least, r.t_moved, &far)
    if not far or total < least:
        return total
    total = 0.0
    for i in range(r.n_sides):
        total += log_phi(r.t_moved[i])
    return total


cdef double bands_moved(Row* r, double d, const double* weights) noexcept nogil:
    """Return the log probability of the two-sided intervals when eta moves by d weights."""
    cdef int i
    cdef double total = 0.0, product = 1.0
    if not glfm_band_masses(r.n_bands, r.a, r.b, d, r.inv_sd, r.band, weights, r.a_moved,
                            r.b_moved, r.mass):
        for i in range(r.n_bands):
            total += log_band(r.a_moved[i], r.b_moved[i])
        return total
    for i in range(r.n_bands):
        product *= r.mass[i]
        if product < TINY:
            total += log(product)
            product = 1.0
    return total + log(product)


cdef void follow(Row* r, double d, const double* weights) noexcept nogil:
    """Make the moved state the current one."""
    cdef int i
    cdef double* swap
    for i in range(r.n_points):
        r.residual[i] -= d * weights[r.point[i]] * r.weight[i]
    swap = r.t
    r.t = r.t_moved
    r.t_moved = swap
    swap = r.a
    r.a = r.a_moved
    r.a_moved = swap
    swap = r.b
    r.b = r.b_moved
    r.b_moved = swap


cdef void load_cells(
    Row* r, int S, const uint8_t* observed, const int* column, const double* lower,
    const double* upper, const double* sd, const double* spread, const double* eta,
) noexcept nogil:
    """Sort the observed cells of a row into points, one-sided and two-sided intervals."""
    cdef int s
    cdef double inverse
    r.n_points = r.n_sides = r.n_bands = 0
    for s in range(S):
        if not observed[column[s]]:
            continue
        if lower[s] == upper[s]:
            r.point[r.n_points] = s
            r.weight[r.n_points] = 1.0 / sd[s]
            r.residual[r.n_points] = (lower[s] - eta[s]) / sd[s]
            r.n_points += 1
            continue
        inverse = 1.0 / (sd[s] * spread[s])
        if lower[s] > -INFINITY and upper[s] < INFINITY:
            r.band[r.n_bands] = s
            r.a[r.n_bands] = (lower[s] - eta[s]) * inverse
            r.b[r.n_bands] = (upper[s] - eta[s]) * inverse
            r.inv_sd[r.n_bands] = inverse
            r.n_bands += 1
        elif lower[s] > -INFINITY or upper[s] < INFINITY:
            r.side[r.n_sides] = s
            if upper[s] < INFINITY:
                r.t[r.n_sides] = (upper[s] - eta[s]) * inverse
                r.slope[r.n_sides] = -inverse
            else:
                r.t[r.n_sides] = (eta[s] - lower[s]) * inverse
                r.slope[r.n_sides] = inverse
            r.n_sides += 1


cdef bint update_row(
    Row* r, int64_t N, int S, int K, int bias, const double* B, int64_t* count, bint shared,
    uint8_t* bits, double* eta, bitgen_t* bitgen,
) noexcept nogil:
    """Draw the bits of a row one after the other; return whether any changed."""
    cdef int k
    cdef int64_t others
    cdef bint changed = False
    cdef double d, u, slack, moved_sides, moved_bands
    cdef const double* weights
    cdef double now_sides = 0.0, now_bands = 0.0
    for k in range(r.n_sides):
        now_sides += log_phi(r.t[k])
    for k in range(r.n_bands):
        now_bands += log_band(r.a[k], r.b[k])
    for k in range(bias, K):
        others = count[k] - bits[k] if shared else count[k]
        if others == 0:
            continue
        d = 1.0 - 2.0 * bits[k]
        weights = B + <size_t> k * S
        # Flip when log odds > log(u / (1 - u)). Log probabilities are at most 0, so that the
        # test may fail before all cells are looked at.
        u = random_standard_uniform(bitgen)
        slack = (d * log(<double> others / (N - others)) + points_gain(r, d, weights)
                 - now_sides - now_bands - (log(u) - log1p(-u)))
        if not slack > 0.0:
            continue
        moved_sides = sides_moved(r, d, weights, -slack)
        slack += moved_sides
        if not slack > 0.0:
            continue
        moved_bands = bands_moved(r, d, weights) if r.n_bands > 0 else 0.0
        if not slack + moved_bands > 0.0:
            continue
        follow(r, d, weights)
        now_sides = moved_sides
        now_bands = moved_bands
        glfm_axpy(S, d, weights, eta)
        bits[k] ^= 1
        if shared:
            count[k] = others + bits[k]
        changed = True
    return changed


def work_sizes(int S):
    """Return the lengths of the float and integer work arrays."""
    return 11 * S, 3 * S


def update_bits(
    double[:, ::1] y,               # in-out (N, S), missing cells redrawn where bits changed
    const uint8_t[:, ::1] observed, # in (N, D)
    const int[::1] column,          # in (S,)
    const double[:, ::1] lower,     # in (N, S)
    const double[:, ::1] upper,     # in (N, S)
    const double[::1] sd,           # in (S,) noise standard deviations
    const double[::1] spread,       # in (S,) sd of what an interval bounds, in units of sd
    const double[:, ::1] B,         # in (C, S)
    uint8_t[:, ::1] Z,              # in-out (N, C)
    int n_columns, int bias,
    int64_t[::1] count,             # in-out (C,) rows that have each feature
    int64_t n_rows,                 # rows that could have it, each of these among them
    bint shared,                    # whether the rows are among those counted
    double[:, ::1] eta,             # in-out (N, S) = Z B
    double[::1] work, int[::1] iwork,  # out
    rng,
):
    """Update the bits of every row once, in order. Return the number of rows that changed."""
    cdef int N = <int> y.shape[0], S = <int> y.shape[1]
    cdef int n, s
    cdef int64_t n_changed = 0
    cdef Row r
    cdef double* w = &work[0]
    r.residual, r.weight, r.t, r.slope, r.t_moved = w, w + S, w + 2 * S, w + 3 * S, w + 4 * S
    w += 5 * S
    r.a, r.b, r.inv_sd, r.a_moved, r.b_moved = w, w + S, w + 2 * S, w + 3 * S, w + 4 * S
    r.mass = w + 5 * S
    r.point, r.side, r.band = &iwork[0], &iwork[0] + S, &iwork[0] + 2 * S
    bit_generator = rng.bit_generator
    cdef bitgen_t* bitgen = <bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
    with bit_generator.lock, nogil:
        for n in range(N):
            load_cells(&r, S, &observed[n, 0], &column[0], &lower[n, 0], &upper[n, 0], &sd[0],
                       &spread[0], &eta[n, 0])
            if not update_row(&r, n_rows, S, n_columns, bias, &B[0, 0], &count[0], shared,
                              &Z[n, 0], &eta[n, 0], bitgen):
                continue
            n_changed += 1
            for s in range(S):
                if not observed[n, column[s]]:
                    y[n, s] = eta[n, s] + sd[s] * random_standard_normal(bitgen)
    return n_changed
