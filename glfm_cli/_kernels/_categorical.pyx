"""Kernels of categorical columns: the multinomial probit.

e    (R,)     means of the R utilities of a categorical cell, 0 for the reference level
s    (R,)     their standard deviations, 1 for the reference level
slot (R,)     the latent column of a level, -1 for the reference level
T             the observed level
h(t)          sum over j != T of log Phi((t - e_j) / s_j), concave in t

Source: [GLFM] sections 3.1.2 and 4.2.
"""

from libc.math cimport INFINITY, NAN, exp, fabs, floor, isfinite, isnan, log, log1p, sqrt
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_exponential, random_standard_normal
from scipy.special.cython_special cimport log_ndtr, ndtr

from glfm_cli._kernels._variates cimport (
    bitgen_of,
    placed,
    standard_truncated_normals,
    truncated_normal,
)

cdef extern from "_vector.h" nogil:
    void GLFM_PREFETCH(const void* p) noexcept
    int GLFM_AHEAD
    void glfm_compete(int R, int n, const double* e, int ld_e, const double* level, double* u,
                      int ld_u, double* won) noexcept

cdef extern from "_normal.h" nogil:
    void glfm_normals(int n, const uint64_t* words, double* x) noexcept
    void glfm_level_probabilities(int R, int n_nodes, const double* low, const double* step,
                                  const double* e, const double* inv, double* cdf, double* pdf,
                                  double* out) noexcept
    double glfm_below_largest(int R, int T, const double* e, double t, double scale,
                              const double* node, const double* weight, double* ratio,
                              double* below) noexcept
    void glfm_modes(int R, const double* e, const double* winner, double tolerance, double* t,
                    double* curvature) noexcept

cdef enum:
    TOGETHER = 256  # cells that are drawn together
    FEW = 4         # levels up to which their free draws are made together
    HALF_FEW = 2    # a word of random bits makes two normals
    CELLS = 16      # GLFM_CELLS

import numpy as np

cdef double INV_SQRT_2 = 0.7071067811865476

# The trapezoid rule: its step resolves the narrowest integrand (the largest of R utilities of sd 1
# grows narrower with R), its ends leave out 1e-13 below and 1e-11 above.
cdef double BELOW = 7.3
cdef double ABOVE = 6.8
cdef double MOST_NODES = 4096.0
cdef int FREE_TRIES = 10
# How near a mode is found that 16 nodes stand around; below which distance from it tails are not fast.
cdef double CENTRED = 1e-2
cdef double NEAR = -6.0
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


cdef enum:
    NODES = 16


def fill_means_of_largest(
    const Py_ssize_t[::1] winner,   # in (n,)
    const double[:, :, ::1] eta,    # in (H, n, R - 1)
    const Py_ssize_t[::1] slot,     # in (R,)
    const double[::1] nodes,        # in (16,) of Gauss-Hermite quadrature
    const double[::1] weights,      # in (16,) over their density
    double[::1] scratch,            # scratch (35 R,)
    double[:, :, ::1] mean,         # out (H, n, R - 1)
    double[:, ::1] log_z,           # out (H, n)
):
    """Fill E[u | which is the largest] and the log probability of that, u ~ N(eta, I).

    The difference of two is normal; of more by quadrature over the largest, centred at its mode.
    O(H n R nodes).
    """
    cdef Py_ssize_t h
    with nogil:
        for h in range(eta.shape[0]):
            if slot.shape[0] == 2:
                fill_larger(winner, eta[h], slot, mean[h], log_z[h])
            else:
                fill_largest(winner, eta[h], slot, nodes, weights, &scratch[0], mean[h], log_z[h])


cdef void fill_larger(
    const Py_ssize_t[::1] winner, const double[:, ::1] eta, const Py_ssize_t[::1] slot,
    double[:, ::1] mean, double[::1] log_z
) noexcept nogil:
    """Do as fill_means_of_largest for each row of two utilities."""
    cdef Py_ssize_t i, j, T
    cdef double[2] e
    cdef double ahead, v
    for i in range(eta.shape[0]):
        T = winner[i]
        for j in range(2):
            e[j] = eta[i, slot[j]] if slot[j] >= 0 else 0.0
        ahead = INV_SQRT_2 * (e[T] - e[1 - T])
        v = INV_SQRT_2 * mills(ahead)
        log_z[i] = log_ndtr(ahead)
        for j in range(2):
            if slot[j] >= 0:
                mean[i, slot[j]] = e[j] + (v if j == T else -v)


cdef void fill_largest(
    const Py_ssize_t[::1] winner, const double[:, ::1] eta, const Py_ssize_t[::1] slot,
    const double[::1] nodes, const double[::1] weights, double* scratch,
    double[:, ::1] mean, double[::1] log_z
) noexcept nogil:
    """Do as fill_means_of_largest for each row, modes of CELLS rows together."""
    cdef Py_ssize_t start = 0, i, j, c, T, n = eta.shape[0], R = slot.shape[0]
    cdef double* e = scratch
    cdef double* s = scratch + R
    cdef double* below = scratch + 2 * R
    cdef double* ratio = scratch + 3 * R
    cdef double* means = scratch + (3 + NODES) * R
    cdef double[CELLS] won, modes, curvatures
    cdef double t, v, scale, slope, curvature, least, total
    for j in range(R):
        s[j] = 1.0
    while start < n:
        for c in range(CELLS):
            i = min(start + c, n - 1)
            won[c] = winner[i]
            for j in range(R):
                means[j * CELLS + c] = eta[i, slot[j]] if slot[j] >= 0 else 0.0
        glfm_modes(<int> R, means, won, CENTRED, modes, curvatures)
        for i in range(start, min(start + CELLS, n)):
            c, T = i - start, winner[i]
            t, curvature, least = modes[c], curvatures[c], INFINITY
            for j in range(R):
                e[j] = means[j * CELLS + c]
                least = min(least, t - e[j])
            if least > NEAR:
                scale = sqrt(2.0 / (1.0 + curvature))
                log_z[i] = 0.0
                total = glfm_below_largest(<int> R, <int> T, e, t, scale, &nodes[0], &weights[0],
                                           ratio, below)
            else:
                t = mode(e, s, R, T, CENTRED, &slope, &curvature)
                scale = sqrt(2.0 / (1.0 + curvature))
                total = below_largest(R, T, e, t, scale, &nodes[0], &weights[0], ratio, below,
                                      &log_z[i])
            log_z[i] += log(total * scale) - 0.5 * (t - e[T]) * (t - e[T]) - LOG_SQRT_2PI
            v = 0.0  # by how much the largest lies above its mean, the others below theirs
            for j in range(R):
                below[j] /= total
                v += below[j]
            below[T] = -v
            for j in range(R):
                if slot[j] >= 0:
                    mean[i, slot[j]] = e[j] - below[j]
        start += CELLS


cdef double below_largest(
    Py_ssize_t R, Py_ssize_t T, const double* e, double t, double scale, const double* nodes,
    const double* weights, double* ratio, double* below, double* log_z
) noexcept nogil:
    """Do as glfm_below_largest wherever utilities lie, but for a factor whose log log_z is."""
    cdef double[NODES] logs
    cdef double v, x, pdf, product, total = 0.0, top = -INFINITY
    cdef Py_ssize_t j, k
    for k in range(NODES):
        x = scale * nodes[k]
        logs[k] = log(weights[k]) - x * (t - e[T] + 0.5 * x)
        product = 1.0
        for j in range(R):
            ratio[k * R + j] = 0.0
            v = t + x - e[j]
            if j == T or v > 7.0:  # log Phi above -1.3e-12
                continue
            if v > -EDGE:
                v = fast_ndtr(v, &pdf)
                product *= v
                ratio[k * R + j] = pdf / v
                if product < 1e-200:
                    logs[k] += log(product)
                    product = 1.0
            else:
                logs[k] += log_ndtr(v)
                ratio[k * R + j] = mills(v)
        logs[k] += log(product)
        top = max(top, logs[k])
    memset(below, 0, R * sizeof(double))
    for k in range(NODES):
        v = exp(logs[k] - top)
        total += v
        for j in range(R):
            below[j] += v * ratio[k * R + j]
    log_z[0] = top
    return total


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


cdef struct Batch:
    # Observed cells that are drawn together.
    int m
    int row[TOGETHER]
    double level[TOGETHER]
    double e[FEW * TOGETHER]   # (R, TOGETHER) means, of few levels
    uint64_t words[HALF_FEW * TOGETHER + 8]
    double u[FEW * TOGETHER + 16]
    double won[TOGETHER]
    double a[TOGETHER]
    double b[TOGETHER]
    double z[TOGETHER]
    int winners[TOGETHER]
    int losers[TOGETHER]


cdef void draw_normals(bitgen_t* bitgen, Batch* c, int n) noexcept nogil:
    """Fill u with n standard normals, or a few more."""
    cdef int i
    n = (n + 15) // 16 * 8
    for i in range(n):
        c.words[i] = bitgen.next_uint64(bitgen.state)
    glfm_normals(n, c.words, c.u)


cdef void draw_all(
    bitgen_t* bitgen, const double* e, const double* s, Py_ssize_t R, Py_ssize_t T, int tries,
    double* utility
) noexcept nogil:
    """Draw all utilities given that level T won: a few free draws, then the winner's first."""
    cdef Py_ssize_t j
    cdef double top
    for j in range(tries):
        if simulate_win(bitgen, e, R, T, utility):
            return
    top = winner(bitgen, e, s, R, T)
    for j in range(R):
        utility[j] = truncated_normal(bitgen, e[j], 1.0, -INFINITY, top)
    utility[T] = top


cdef double keep(
    const double* utility, const Py_ssize_t[::1] slot, double[:, :] y, Py_ssize_t n
) noexcept nogil:
    """Write a row's utilities; return the square of the reference level's."""
    cdef Py_ssize_t j
    cdef double reference = 0.0
    for j in range(slot.shape[0]):
        if slot[j] >= 0:
            y[n, slot[j]] = utility[j]
        else:
            reference = utility[j]
    return reference * reference


cdef double draw_two(
    bitgen_t* bitgen, Batch* c, const double[:, :] eta, const Py_ssize_t[::1] slot, double[:, :] y
) noexcept nogil:
    """Draw cells of two levels; return the sum of squares of the reference level's utilities.

    The difference d of the two utilities is N(eta, 2) of known sign; given d, the one that is
    kept is N(eta + (d - eta) / 2, 1 / 2).
    """
    cdef int i, n
    cdef bint above
    cdef double mean, low, high, difference, reference = 0.0
    for i in range(c.m):
        above = slot[<Py_ssize_t> c.level[i]] >= 0
        mean = eta[c.row[i], 0]
        c.a[i] = -INV_SQRT_2 * mean if above else -INFINITY
        c.b[i] = INFINITY if above else -INV_SQRT_2 * mean
    standard_truncated_normals(bitgen, c.m, c.a, c.b, c.u, c.z)
    draw_normals(bitgen, c, c.m)
    for i in range(c.m):
        n = c.row[i]
        above = slot[<Py_ssize_t> c.level[i]] >= 0
        low = 0.0 if above else -INFINITY
        high = INFINITY if above else 0.0
        mean = eta[n, 0]
        difference = placed(bitgen, c.z[i], mean, 1.0 / INV_SQRT_2, low, high)
        y[n, 0] = 0.5 * (mean + difference) + INV_SQRT_2 * c.u[i]
        reference += (y[n, 0] - difference) * (y[n, 0] - difference)
    return reference


cdef double draw_few(
    bitgen_t* bitgen, Batch* c, const Py_ssize_t[::1] slot, const double* s, double[:, :] y
) noexcept nogil:
    """Draw cells of few levels: free draws of all, of those that have not been right, and so on."""
    cdef int R = <int> slot.shape[0], i, j, k, tries, width, won, lost
    cdef double reference = 0.0
    cdef double[FEW] e, utility
    for tries in range(2 * FREE_TRIES):
        if c.m == 0:
            break
        width = (c.m + 7) // 8 * 8
        draw_normals(bitgen, c, R * width)
        glfm_compete(R, width, c.e, TOGETHER, c.level, c.u, width, c.won)
        won = lost = 0
        for i in range(c.m):  # no branch that the processor would have to guess
            c.winners[won] = c.losers[lost] = i
            won += c.won[i] > 0.0
            lost += not c.won[i] > 0.0
        for k in range(won):
            i = c.winners[k]
            for j in range(R):
                utility[j] = c.u[j * width + i]
            reference += keep(utility, slot, y, c.row[i])
        for k in range(lost):
            i = c.losers[k]
            c.row[k], c.level[k] = c.row[i], c.level[i]
            for j in range(R):
                c.e[j * TOGETHER + k] = c.e[j * TOGETHER + i]
        c.m = lost
    for i in range(c.m):
        for j in range(R):
            e[j] = c.e[j * TOGETHER + i]
        draw_all(bitgen, e, s, R, <Py_ssize_t> c.level[i], 0, utility)
        reference += keep(utility, slot, y, c.row[i])
    return reference


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
    int
        How many cells are observed.
    """
    cdef Py_ssize_t n = 0, j, T, R = slot.shape[0], bad = -1, observed = 0
    cdef int i
    cdef double reference = 0.0, value, check
    cdef double[::1] e = np.zeros(R), s = np.ones(R), utility = np.empty(R)
    cdef Batch c
    cdef bitgen_t* bitgen = bitgen_of(rng)
    memset(c.level, 0, sizeof(c.level))
    memset(c.e, 0, sizeof(c.e))  # what is past the last cell is computed with, too
    with rng.bit_generator.lock, nogil:
        while n < x.shape[0] and bad < 0:
            c.m = 0
            while n < x.shape[0] and c.m < TOGETHER:
                if n + GLFM_AHEAD < x.shape[0]:
                    GLFM_PREFETCH(&eta[n + GLFM_AHEAD, 0])
                    GLFM_PREFETCH(&y[n + GLFM_AHEAD, 0])
                if not isnan(x[n]):
                    check = 0.0
                    for j in range(R):
                        value = eta[n, slot[j]] if slot[j] >= 0 else 0.0
                        check += 0.0 * value
                        if R <= FEW:
                            c.e[j * TOGETHER + c.m] = value
                    if check != 0.0:
                        bad = n
                        break
                    c.row[c.m], c.level[c.m] = <int> n, x[n]
                    c.m += 1
                n += 1
            observed += c.m
            if R == 2:
                reference += draw_two(bitgen, &c, eta, slot, y)
            elif R <= FEW:
                reference += draw_few(bitgen, &c, slot, &s[0], y)
            else:
                for i in range(c.m):
                    for j in range(R):
                        if slot[j] >= 0:
                            e[j] = eta[c.row[i], slot[j]]
                    T = <Py_ssize_t> c.level[i]
                    draw_all(bitgen, &e[0], &s[0], R, T, FREE_TRIES, &utility[0])
                    reference += keep(&utility[0], slot, y, c.row[i])
    return bad, reference, observed


cdef void bound_by_reference(bitgen_t* bitgen, Batch* c, double[:, :] upper) noexcept nogil:
    """Draw the reference level's utilities, above the largest of the others; empty the batch."""
    cdef int i
    cdef Py_ssize_t j
    cdef double top
    standard_truncated_normals(bitgen, c.m, c.a, c.b, c.won, c.z)
    for i in range(c.m):
        top = placed(bitgen, c.z[i], 0.0, 1.0, c.a[i], INFINITY)
        for j in range(upper.shape[1]):
            upper[c.row[i], j] = top
    c.m = 0


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
    cdef Batch c  # rows whose reference level won
    cdef bitgen_t* bitgen = bitgen_of(rng)
    c.m = 0
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
            for j in range(R - 1):
                lower[n, j] = -INFINITY
            if slot[T] >= 0:
                top = y[n, slot[T]]
                for j in range(R - 1):
                    upper[n, j] = top
                lower[n, slot[T]] = top
                continue
            top = y[n, 0]
            for j in range(1, R - 1):
                top = max(top, y[n, j])
            c.row[c.m], c.a[c.m], c.b[c.m] = <int> n, top, INFINITY
            c.m += 1
            if c.m == TOGETHER:
                bound_by_reference(bitgen, &c, upper)
        bound_by_reference(bitgen, &c, upper)


cdef inline void load_row(
    const double[:, :] eta, const double[:, :] var, const Py_ssize_t[::1] slot, Py_ssize_t n,
    double[::1] e, double[::1] s
) noexcept nogil:
    """Fill the means and scales of all R utilities of row n."""
    cdef Py_ssize_t j
    for j in range(slot.shape[0]):
        if slot[j] >= 0:
            e[j] = eta[n, slot[j]]
            s[j] = sqrt(var[n, slot[j]])
        else:
            e[j] = 0.0
            s[j] = 1.0


cdef int load_cells(
    const double[:, :] eta, const double[:, :] var, const Py_ssize_t[::1] slot, Py_ssize_t start,
    int m, double* e, double* inv, double* low, double* step, uint8_t* bad
) noexcept nogil:
    """Load m cells side by side, and their grids; return the number of nodes.

    Cells that are not finite, which `bad` marks, and those past the last get means of 0.
    """
    cdef Py_ssize_t j, R = slot.shape[0]
    cdef int i, n_nodes
    cdef double mean, sd, top, width = 0.0, most = 0.45 if R <= 4 else 0.35 if R <= 20 else 0.25
    for i in range(CELLS):
        bad[i] = False
        for j in range(R):
            mean, sd = 0.0, 1.0
            if i < m and slot[j] >= 0:
                mean, sd = eta[start + i, slot[j]], sqrt(var[start + i, slot[j]])
            bad[i] |= not isfinite(mean + sd)
            e[j * CELLS + i], inv[j * CELLS + i] = mean, 1.0 / sd
        low[i] = top = -INFINITY
        for j in range(R):
            if bad[i]:
                e[j * CELLS + i], inv[j * CELLS + i] = 0.0, 1.0
            sd = 1.0 / inv[j * CELLS + i]
            low[i] = max(low[i], e[j * CELLS + i] - BELOW * sd)
            top = max(top, e[j * CELLS + i] + ABOVE * sd)
        step[i] = top - low[i]
        width = max(width, step[i])
    n_nodes = <int> min(floor(width / most) + 2.0, MOST_NODES)
    for i in range(CELLS):
        step[i] /= n_nodes - 1
    return n_nodes


cdef const double* probabilities(
    const double[:, :] eta, const double[:, :] var, const Py_ssize_t[::1] slot, Py_ssize_t start,
    int m, double* work, uint8_t* bad
) noexcept nogil:
    """Return the probabilities (R, CELLS) of m cells; `work` is (5 R + 2, CELLS)."""
    cdef int R = <int> slot.shape[0], size = R * CELLS
    cdef double* low = work + 5 * size
    cdef int n_nodes = load_cells(eta, var, slot, start, m, work, work + size, low, low + CELLS, bad)
    glfm_level_probabilities(R, n_nodes, low, low + CELLS, work, work + size, work + 2 * size,
                             work + 3 * size, work + 4 * size)
    return work + 4 * size


def fill_probabilities(
    const double[:, :] eta, const double[:, :] var, const Py_ssize_t[::1] slot,
    double[:, ::1] out
):
    """Fill out with P(x = r) = integral of N(t; e_r, s_r^2) prod_{j != r} Phi((t - e_j)/s_j) dt.

    The trapezoid rule on one grid for all levels, which for such integrands converges faster than
    any power of the step: absolute error below 1e-10. Several cells at once share the number of
    nodes. O(n R G), G from 32 to 57 nodes for var = 1.

    Parameters
    ----------
    eta : (n, R - 1) float64, in
    var : (n, R - 1) float64, in
        Variances of the utilities that have a latent column, >= 1; the reference level's is 1.
    slot : (R,) intp, in
    out : (n, R) float64, out
        Rows sum to 1; NaN where eta is not finite.
    """
    cdef Py_ssize_t block, n, j, R = slot.shape[0]
    cdef int i, m
    cdef double[::1] work = np.empty((5 * R + 2) * CELLS)
    cdef const double* p
    cdef uint8_t[CELLS] bad
    with nogil:
        for block in range((out.shape[0] + CELLS - 1) // CELLS):
            n = block * CELLS
            m = <int> min(CELLS, out.shape[0] - n)
            p = probabilities(eta, var, slot, n, m, &work[0], bad)
            for i in range(m):
                for j in range(R):
                    out[n + i, j] = NAN if bad[i] else p[j * CELLS + i]


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


def fill_log_probability(
    const double[:] x, const double[:, :] eta, const double[:, :] var,
    const Py_ssize_t[::1] slot, double[::1] out
):
    """Fill out with log P(x_n), accurate in the far tails. Arguments as `fill_probabilities`."""
    cdef Py_ssize_t block, n, T, R = slot.shape[0]
    cdef int i, m
    cdef double[::1] e = np.empty(R), s = np.empty(R), work = np.empty((5 * R + 2) * CELLS)
    cdef const double* p
    cdef uint8_t[CELLS] bad
    with nogil:
        for block in range((x.shape[0] + CELLS - 1) // CELLS):
            n = block * CELLS
            m = <int> min(CELLS, x.shape[0] - n)
            p = probabilities(eta, var, slot, n, m, &work[0], bad)
            for i in range(m):
                T = <Py_ssize_t>x[n + i]
                if p[T * CELLS + i] > SMALL and not bad[i]:
                    out[n + i] = log(p[T * CELLS + i])
                else:
                    load_row(eta, var, slot, n + i, e, s)
                    out[n + i] = log_tail_probability(&e[0], &s[0], R, T)


def standard_normals(rng, double[::1] out):
    """Fill out with the kernel's standard normals, for tests."""
    cdef Py_ssize_t n = 0
    cdef int i, m
    cdef Batch c
    cdef bitgen_t* bitgen = bitgen_of(rng)
    with rng.bit_generator.lock, nogil:
        while n < out.shape[0]:
            m = <int> min(FEW * TOGETHER, out.shape[0] - n)
            draw_normals(bitgen, &c, m)
            for i in range(m):
                out[n + i] = c.u[i]
            n += m
