"""Bits of the latent features given the weights, with pseudo-observations integrated out.

The row update of `_glfm` conditions on pseudo-observations. Where these are only known to lie in
an interval they were drawn with the row's bits in view, and many of them together hold the bits
where they are. Here the bits of a row are drawn from

    P(z_nk = 1 | rest)  prop. to  m_k / (N - m_k)  prod_s p(cell s | z_n B)

m_k the count in the other rows, p(cell) a normal density where lower = upper (a point), else
Phi((upper - eta) / sd) - Phi((lower - eta) / sd), and 1 where missing. A feature that only this
row has keeps its bit: dropping it would change the dimension, which is the row update's work.
Rows that are new to a fit (`shared` = 0) leave its counts as they are, and see N + 1 rows.
Blocks of rows that are drawn side by side are given the log odds of every feature, drawn from
Beta(m_k, N - m_k + 1), in place of the counts in other rows. A feature that no row of a block has
stays away from it, and the last one of a block that has it keeps it: which blocks have a feature
is then given, and no feature ends.
On why augmentation sticks: Papaspiliopoulos, Roberts and Skold, Statistical Science 22 (2007).

Most flips are hopeless, and a bound tells so. The log probability of every cell is concave in
eta: with g its slope and c no more than its curvature wherever one flip can lead,

    log p(eta + d w) - log p(eta)  <=  d g w - c w^2 / 2          with equality for points.

The sum over the cells is one pass over a feature's weights. Only where it leaves a chance are
the probabilities themselves looked at, which settle the draw.

    points  c = 1 / var;  so are intervals too narrow to tell from one, of variance 1 + width^2 / 12
    sides   p = Phi(t):  the curvature falls as t grows, so that its value at the far end is a bound
    bands   p = Phi(b) - Phi(a):  the curvature is 1 - Var(x | a < x < b) >= 1 - (b - a)^2 / pi^2
            [Payne and Weinberger 1960]

Cost: O(N K S) at about half a nanosecond each where flips are hopeless; no memory beyond `work`.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, exp, fabs, log, log1p
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport random_standard_normal
from scipy.special.cython_special cimport log_ndtr

import numpy as np

cdef extern from "_vector.h" nogil:
    void glfm_axpy(int n, double a, const double* x, double* y) noexcept
    void glfm_masked_axpy(int n, double a, const double* w, const double* x, double* y) noexcept
    void glfm_parabolas(int n_rows, int n, const double* d, const double* g, const double* c,
                        const double* w, int ld, double* gain) noexcept
    double glfm_masked_parabola(int n, double d, const double* g, const double* c,
                                const double* w) noexcept
    int GLFM_LANES

cdef extern from "_normal.h" nogil:
    double GLFM_FAR
    void glfm_log_odds(int n, double* u) noexcept
    double glfm_look(int n_sides, const double* t, const double* slope, const double* reach,
                     double* g, double* c, int n_bands, const double* a, const double* b,
                     const double* inv, double* band_g, int* far) noexcept
    void glfm_place_cells(int n, const double* y, const double* lower, const double* upper,
                          const double* eta, const double* known, const double* seen,
                          const double* inv_sd, const double* inv, double* g, double* c,
                          double* low, double* high, double* t, double* dt, double* curve,
                          double* kind) noexcept
    int GLFM_BAND
    int GLFM_SIDE

cdef double LOG_SQRT_2PI = 0.9189385332046727
cdef double LOG_2 = 0.6931471805599453
cdef double NARROW = 1e-5  # intervals as narrow as this are taken as density times width
cdef double MARGIN = 1e-6  # of the bound: more than all rounding errors together
cdef double CERTAIN = 20.0  # Phi is 1 there
cdef int TOGETHER = 4  # features whose bounds are computed at once


cdef struct Look:
    # The cells that are intervals, compact, at one value of eta.
    double* t          # one-sided: p = Phi(t)
    double* g          # d log p / d eta
    double* c          # no more than -d2 log p / d eta2 as far as one flip leads
    double* a          # two-sided: p = Phi(b) - Phi(a)
    double* b
    double* band_g
    double log_p       # of all of them
    double allowance   # by how much those without slopes, too far out for them, can gain


cdef struct Row:
    # The observed cells of a row by what is known of them.
    int S                # pseudo-columns, and with padding
    int width
    const int* column    # (S,) the column of each
    const double* known  # (S,) 1 where observed y are points
    const int* open      # (n_open,) those where they are not
    int n_open
    const double* noise_inv_sd  # (S,) one over the noise's standard deviation
    const double* inv    # (S,) the same of what an interval bounds
    double* g            # (width,) slopes and curvatures by pseudo-column, 0 where missing
    double* c
    double* point_c      # those of points
    const double* reach  # (S,) the most that eta moves in one flip
    int n_missing
    int* missing
    int n_sides
    int* side
    double* slope        # dt / deta
    double* side_reach   # the most that t moves in one flip
    int n_bands
    int* band
    double* inv_sd       # -da / deta
    double* band_c
    Look now             # at the present eta
    Look moved           # with one bit flipped
    double* seen         # (width,) of every pseudo-column, before they are sorted
    double* low
    double* high
    double* t
    double* dt
    double* curve
    double* kind


cdef inline int padded(int n) noexcept nogil:
    return (n + GLFM_LANES - 1) // GLFM_LANES * GLFM_LANES


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
    log_b = log_ndtr(b)
    return log_b + log1p(-exp(log_ndtr(a) - log_b))


cdef void look_far(const Row* r, Look* at) noexcept nogil:
    """Redo `look` in a row with intervals wholly beyond GLFM_FAR: they get no slopes."""
    cdef int i
    cdef double x
    at.log_p = 0.0
    for i in range(r.n_sides):
        x = log_ndtr(at.t[i])
        at.log_p += x
        if at.t[i] < GLFM_FAR:
            at.allowance -= x
            at.g[i] = at.c[i] = 0.0
    for i in range(r.n_bands):
        x = log_band(at.a[i], at.b[i])
        at.log_p += x
        if at.b[i] < GLFM_FAR or at.a[i] > -GLFM_FAR:
            at.allowance -= x
            at.band_g[i] = 0.0


cdef void look(const Row* r, Look* at) noexcept nogil:
    """Compute log probabilities, slopes and bends of intervals from t, a and b."""
    cdef int i, far
    at.allowance = 0.0
    # Padding: cells that are as good as certain.
    for i in range(r.n_sides, padded(r.n_sides)):
        at.t[i] = CERTAIN
        r.slope[i] = r.side_reach[i] = 0.0
    for i in range(r.n_bands, padded(r.n_bands)):
        at.a[i] = -CERTAIN
        at.b[i] = CERTAIN
        r.inv_sd[i] = 0.0
    at.log_p = glfm_look(padded(r.n_sides), at.t, r.slope, r.side_reach, at.g, at.c,
                         padded(r.n_bands), at.a, at.b, r.inv_sd, at.band_g, &far)
    if far:
        look_far(r, at)


cdef void settle(Row* r) noexcept nogil:
    """Spread the slopes and bends of intervals over the pseudo-columns."""
    cdef int i
    for i in range(r.n_sides):
        r.g[r.side[i]] = r.now.g[i]
        r.c[r.side[i]] = r.now.c[i]
    for i in range(r.n_bands):
        r.g[r.band[i]] = r.now.band_g[i]
        # A cell without slope may gain all its allowance.
        r.c[r.band[i]] = r.band_c[i] if r.now.band_g[i] != 0.0 else 0.0


cdef double points_gain(const Row* r, double d, const double* weights) noexcept nogil:
    """Return by how much the points' log density grows when eta moves by d weights."""
    return glfm_masked_parabola(r.width, d, r.g, r.point_c, weights)


cdef double move(Row* r, double d, const double* weights) noexcept nogil:
    """Look at the cells with eta moved by d weights; return by how much log p grows."""
    cdef int i
    cdef double w
    for i in range(r.n_sides):
        r.moved.t[i] = r.now.t[i] + d * r.slope[i] * weights[r.side[i]]
    for i in range(r.n_bands):
        w = d * r.inv_sd[i] * weights[r.band[i]]
        r.moved.a[i] = r.now.a[i] - w
        r.moved.b[i] = r.now.b[i] - w
    look(r, &r.moved)
    return points_gain(r, d, weights) + r.moved.log_p - r.now.log_p


cdef void follow(Row* r, double d, const double* weights) noexcept nogil:
    """Stay where `move` looked."""
    cdef Look before = r.now
    r.now = r.moved
    r.moved = before
    glfm_masked_axpy(r.width, -d, r.point_c, weights, r.g)
    settle(r)


cdef void load_cells(
    Row* r, const double* y, const uint8_t* observed, const double* lower, const double* upper,
    const double* eta,
) noexcept nogil:
    """Sort the cells of a row into missing, points, one-sided and two-sided intervals.

    Every cell is written to the end of both lists, which grow where it belongs: there is no
    branch that the processor would have to guess.
    """
    cdef int s, i, missing = 0, sides = 0, bands = 0
    cdef bint here
    for s in range(r.S):
        here = observed[r.column[s]]
        r.seen[s] = here
        r.missing[missing] = s
        missing += not here
    glfm_place_cells(r.S, y, lower, upper, eta, r.known, r.seen, r.noise_inv_sd, r.inv, r.g,
                     r.point_c, r.low, r.high, r.t, r.dt, r.curve, r.kind)
    memcpy(r.c, r.point_c, r.width * sizeof(double))
    for i in range(r.n_open):
        s = r.open[i]
        r.band[bands] = r.side[sides] = s
        bands += r.kind[s] == GLFM_BAND
        sides += r.kind[s] == GLFM_SIDE
    for i in range(bands):
        s = r.band[i]
        r.now.a[i] = r.low[s]
        r.now.b[i] = r.high[s]
        r.inv_sd[i] = r.inv[s]
        r.band_c[i] = r.curve[s]
    for i in range(sides):
        s = r.side[i]
        r.now.t[i] = r.t[s]
        r.slope[i] = r.dt[s]
        r.side_reach[i] = r.inv[s] * r.reach[s]
    r.n_missing, r.n_sides, r.n_bands = missing, sides, bands


cdef void fill_prior(
    double* prior, int64_t count, int64_t n_rows, bint shared, const double* odds
) noexcept nogil:
    """Set prior[bit] to the log odds of a feature for a row that has (1) or has not (0) it.

    They are -inf when no other row has it, and inf for a row that lacks what all rows have.
    """
    cdef int64_t others
    cdef int bit
    for bit in range(2):
        others = count - bit if shared else count
        if others <= 0:
            prior[bit] = -INFINITY
        elif odds != NULL:
            prior[bit] = odds[0]
        elif others == n_rows:  # no such row
            prior[bit] = INFINITY
        else:
            prior[bit] = log(<double> others / (n_rows - others))


cdef bint update_row(
    Row* r, int64_t n_rows, int K, int bias, const double* B, int64_t* count, bint shared,
    const double* odds, double* prior, double* limit, uint8_t* bits, double* eta,
    bitgen_t* bitgen,
) noexcept nogil:
    """Draw the bits of a row one after the other; return whether any changed.

    A bit flips when its log odds are above log(u / (1 - u)), u uniform.
    """
    cdef int k, i, first = bias, ahead = bias  # whose bounds are known, from `first` on
    cdef bint changed = False
    cdef double d, slack, bound
    cdef double[4] sign, gain
    cdef const double* weights
    for k in range(bias, K):
        limit[k] = bitgen.next_double(bitgen.state)
    glfm_log_odds(padded(K), limit)
    for k in range(bias, K):
        if k == ahead:
            first, ahead = k, min(k + TOGETHER, K)
            for i in range(ahead - k):
                sign[i] = 1.0 - 2.0 * bits[k + i]
            glfm_parabolas(ahead - k, r.width, sign, r.g, r.c, B + <size_t> k * r.width, r.width, gain)
        slack = prior[2 * k + bits[k]]
        if slack == -INFINITY:  # no other row has the feature
            continue
        d = sign[k - first]
        slack = slack * d - limit[k]
        bound = gain[k - first] + r.now.allowance
        weights = B + <size_t> k * r.width
        if not slack + bound > -MARGIN or not slack + move(r, d, weights) > 0.0:
            continue
        follow(r, d, weights)
        glfm_axpy(r.S, d, weights, eta)
        bits[k] ^= 1
        if shared:
            count[k] += 2 * bits[k] - 1
            fill_prior(prior + 2 * k, count[k], n_rows, shared, odds + k if odds else NULL)
        changed = True
        ahead = k + 1  # what was computed is of the bits before
    return changed


def work_sizes(int S):
    """Return the lengths of the float and integer work arrays."""
    return 30 * padded(S), 4 * S


cdef double* partition(Row* r, int S, double* work, int* iwork) noexcept nogil:
    """Place the row's arrays in the work space; return what is left of it."""
    cdef int i, width = padded(S)
    cdef Look* at
    r.S, r.width = S, width
    r.g, r.c, r.point_c = work, work + width, work + 2 * width
    memset(work, 0, 3 * <size_t> width * sizeof(double))
    r.slope, r.side_reach = work + 3 * width, work + 4 * width
    r.inv_sd, r.band_c = work + 5 * width, work + 6 * width
    work += 7 * width
    for i in range(2):
        at = &r.moved if i else &r.now
        at.t, at.g, at.c = work, work + width, work + 2 * width
        at.a, at.b, at.band_g = work + 3 * width, work + 4 * width, work + 5 * width
        work += 6 * width
    r.seen, r.low, r.high, r.t = work, work + width, work + 2 * width, work + 3 * width
    r.dt, r.curve, r.kind = work + 4 * width, work + 5 * width, work + 6 * width
    work += 7 * width
    r.side, r.band, r.missing = iwork, iwork + S, iwork + 2 * S
    return work


def update_bits(
    double[:, ::1] y,               # in-out (N, S), missing cells redrawn where bits changed
    const uint8_t[:, ::1] observed, # in (N, D)
    const int[::1] column,          # in (S,)
    const uint8_t[::1] known,       # in (D,) 1 = observed y are points, without bounds
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
    const double[::1] odds=None,    # in (C,) log odds of the features; `count` is of these rows
):
    """Update the bits of every row once, in order. Return the number of rows that changed."""
    if n_columns <= bias or y.shape[1] == 0:
        return 0
    cdef int N = <int> y.shape[0], S = <int> y.shape[1]
    cdef int n, s, k, width = padded(S)
    cdef int64_t n_changed = 0
    cdef Row r
    cdef const double* given = NULL
    cdef double[::1] prior = np.empty(2 * n_columns)
    cdef double[::1] limit = np.full(padded(n_columns), 0.5)
    cdef double[:, ::1] weights = np.zeros((n_columns, width))
    cdef double* noise_inv_sd = partition(&r, S, &work[0], &iwork[0])
    cdef double* inv = noise_inv_sd + width
    cdef double* reach = noise_inv_sd + 2 * width
    cdef double* points = noise_inv_sd + 3 * width
    cdef int* open = &iwork[3 * S]
    r.column, r.known, r.open, r.n_open = &column[0], points, open, 0
    r.noise_inv_sd, r.inv, r.reach = noise_inv_sd, inv, reach
    if odds is not None:
        given = &odds[0]
    bit_generator = rng.bit_generator
    cdef bitgen_t* bitgen = <bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
    with bit_generator.lock, nogil:
        for s in range(S):
            noise_inv_sd[s] = 1.0 / sd[s]
            inv[s] = 1.0 / (sd[s] * spread[s])
            reach[s] = 0.0
            points[s] = known[column[s]]
            open[r.n_open] = s
            r.n_open += not known[column[s]]
            for k in range(bias, n_columns):
                weights[k, s] = B[k, s]
                reach[s] = max(reach[s], fabs(B[k, s]))
        for k in range(bias, n_columns):
            fill_prior(&prior[2 * k], count[k], n_rows, shared, given + k if given else NULL)
        for n in range(N):
            load_cells(&r, &y[n, 0], &observed[n, 0], &lower[n, 0], &upper[n, 0], &eta[n, 0])
            look(&r, &r.now)
            settle(&r)
            if not update_row(&r, n_rows, n_columns, bias, &weights[0, 0], &count[0], shared,
                              given, &prior[0], &limit[0], &Z[n, 0], &eta[n, 0], bitgen):
                continue
            n_changed += 1
            for k in range(r.n_missing):
                s = r.missing[k]
                y[n, s] = eta[n, s] + sd[s] * random_standard_normal(bitgen)
    return n_changed
