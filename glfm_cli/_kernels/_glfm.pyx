"""Row update and weight draw of the latent feature model, with the weights integrated out.

The state is that of models where  y_ns = z_n b_s + noise  in units of the noise standard
deviation:  ytil = y / sd.  Letters (sources: [GLFM] section 4 and appendix A, corrected as the
docstrings of glfm_cli.latent.glfm say):

    Z (N, C)      binary features, compact columns 0..K-1; column 0 is the bias when there is one
    A (G, C, C)   P^-1,  P = Z'Z + diag(prior precision), one per group of pseudo-columns
    M (C, S)      P^-1 Z' ytil, the weights' conditional mean
    L (C, S)      Z' ytil
    ZZ (C, C)     Z'Z; its diagonal holds the feature counts m_k
    tau (G,)      prior variance of a weight in noise units; bias_var (G,) the same for the bias

C is the capacity (feature cap + bias), K <= C the columns in use. A group is a set of
pseudo-columns with one prior scale: a single group under the noise-scaled prior. Segments are
runs of pseudo-columns of one group, (start, end, group).

Cost of `sweep`: O(N (K^2 G + K S)) time; no memory beyond the work array.
"""

from libc.math cimport exp, frexp, lgamma, log, sqrt
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from cpython.pycapsule cimport PyCapsule_GetPointer
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport (
    random_standard_gamma,
    random_standard_normal,
    random_standard_uniform,
)
from scipy.linalg.cython_blas cimport dgemm, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

import numpy as np

cdef extern from "_vector.h" nogil:
    void glfm_axpy(int n, double a, const double* x, double* y) noexcept
    void glfm_sum_rows(int n_rows, const int* rows, int n, const double* x, int ld,
                       double* out) noexcept
    void glfm_add_to_rows(int n_rows, const int* rows, int n, double a, const double* x, int ld,
                          double* y) noexcept
    void glfm_dots(int n, const double* x, const double* r, const double* w,
                   double* xr, double* xx) noexcept
    double glfm_weighted_square(int n, const double* w, const double* x) noexcept
    int GLFM_LANES
    void glfm_rank_one(int n_rows, int n, double a, const double* v, const double* x,
                       int ld, double* y) noexcept

cdef enum:
    MAX_NEW = 30  # largest number of new features of one row
    REBUILD_EVERY = 1000  # rows between exact recomputations of A and M

cdef double NEVER = -40.0  # log odds that no double is small enough to accept
cdef double LOG_2 = 0.6931471805599453
cdef double SINGULAR = 1e-9  # below this 1 - z A z' the downdate would lose its digits


cdef struct Script:
    # Replays and records the random decisions of one row update (tests only).
    const int* choices
    int n_choices
    int n_made
    int capacity
    int width
    int* made
    double* probabilities  # (capacity, width), filled with -1 past the options of a decision


cdef struct Model:
    int N, D, S, G, C, K, bias, max_features, n_segments, n_active, stale
    int width_S, width_C  # rows of M and L, of A and ZZ, padded with zeros
    double alpha
    double* y
    const uint8_t* observed
    const int* column
    const int* segments
    const double* tau
    const double* bias_var
    const double* sd
    uint8_t* Z
    # work space
    double* A
    double* M
    double* L
    double* ZZ
    double* chol
    double* v
    double* z
    double* inv_sd
    double* row
    double* seen
    double* r
    double* mean
    double* q
    double* R2
    double* scaled  # R2 / v of the row's current bits
    double* n_seen
    double* c
    double* g
    double* new_weight
    double* new_prior  # log Poisson(k; alpha / N), but for a constant
    double* evidence  # of the row's current bits
    double* prior  # prior log odds of a bit by the count of its feature in other rows
    int* active
    int* order
    bitgen_t* bitgen
    Script* script


# ---------------------------------------------------------------- work space

cdef inline int padded(int n) noexcept nogil:
    return (n + GLFM_LANES - 1) // GLFM_LANES * GLFM_LANES


def work_sizes(int N, int C, int S, int G):
    """Return the lengths of the float and integer work arrays."""
    cdef int width_C = padded(C), width_S = padded(S)
    floats = (G * C * width_C + 2 * C * width_S + C * width_C + C * C + (G + 1) * width_C
              + 5 * width_S + 6 * G + 2 * (MAX_NEW + 1) + 1 + N)
    return floats, 2 * C


cdef void partition(Model* m, double* work, int* iwork) noexcept nogil:
    m.width_C = padded(m.C)
    m.width_S = padded(m.S)
    m.A = work; work += m.G * m.C * m.width_C
    m.M = work; work += m.C * m.width_S
    m.L = work; work += m.C * m.width_S
    m.ZZ = work; work += m.C * m.width_C
    m.chol = work; work += m.C * m.C
    m.v = work; work += m.G * m.width_C
    m.z = work; work += m.width_C
    m.inv_sd = work; work += m.width_S
    m.row = work; work += m.width_S
    m.seen = work; work += m.width_S
    m.r = work; work += m.width_S
    m.mean = work; work += m.width_S
    m.q = work; work += m.G
    m.R2 = work; work += m.G
    m.scaled = work; work += m.G
    m.n_seen = work; work += m.G
    m.c = work; work += m.G
    m.g = work; work += m.G
    m.new_weight = work; work += MAX_NEW + 1
    m.new_prior = work; work += MAX_NEW + 1
    m.evidence = work; work += 1
    m.prior = work
    m.active = iwork
    m.order = iwork + m.C


# ---------------------------------------------------------------- random decisions

cdef int scripted(Script* script, const double* p, int n) noexcept nogil:
    cdef int i, at = script.n_made, pick = 0
    if at < script.n_choices:
        pick = script.choices[at]
    if at < script.capacity:
        script.made[at] = pick
        for i in range(n):
            script.probabilities[at * script.width + i] = p[i]
    script.n_made += 1
    return pick


cdef void shuffle(bitgen_t* bitgen, int n, int* order) noexcept nogil:
    """Permute uniformly: Fisher and Yates, several steps from one 32-bit word.

    A word times the number of options has the option in its upper half, and in the lower one the
    word for the next step. The few words that favour some options are drawn again [Lemire 2019];
    the product of the steps' options takes the place of their number.
    """
    cdef int i = n, j, steps, k, held
    cdef int[8] options
    cdef uint32_t word, product, surplus
    cdef uint64_t wide
    while i > 1:
        product = 1
        steps = 0
        while steps < 8 and i - steps > 1 and <uint64_t> product * <uint32_t> (i - steps) < 1 << 24:
            product *= <uint32_t> (i - steps)
            steps += 1
        surplus = (<uint32_t> 0 - product) % product  # 2^32 modulo product
        while True:
            word = bitgen.next_uint32(bitgen.state)
            for k in range(steps):
                wide = <uint64_t> word * <uint32_t> (i - k)
                options[k] = <int> (wide >> 32)
                word = <uint32_t> wide
            if word >= surplus:
                break
        for k in range(steps):
            i -= 1
            j = options[k]
            held = order[i]
            order[i] = order[j]
            order[j] = held


cdef void scripted_shuffle(Model* m, int n) noexcept nogil:
    """The same, each step a decision of its own."""
    cdef int i, j, k, held
    for i in range(n - 1, 0, -1):
        for k in range(i + 1):
            m.chol[k] = 1.0 / (i + 1)
        j = scripted(m.script, m.chol, i + 1)
        held = m.order[i]
        m.order[i] = m.order[j]
        m.order[j] = held


cdef bint choose_flip(Model* m, double p, double u) noexcept nogil:
    """Return true with probability p; u is uniform."""
    cdef double[2] both
    if m.script == NULL:
        return u < p
    both[0] = 1.0 - p
    both[1] = p
    return scripted(m.script, both, 2) == 1


cdef int choose_weighted(Model* m, double* p, int n) noexcept nogil:
    """Choose one of 0..n-1 with probabilities p (summing to 1)."""
    cdef int i
    cdef double u, total = 0.0
    if m.script != NULL:
        return scripted(m.script, p, n)
    u = random_standard_uniform(m.bitgen)
    for i in range(n - 1):
        total += p[i]
        if u < total:
            return i
    return n - 1


# ---------------------------------------------------------------- sufficient statistics

cdef inline int segment_end(const Model* m, int segment) noexcept nogil:
    """Return where a segment ends; a single one runs over the padding, for whole vectors."""
    return m.width_S if m.n_segments == 1 else m.segments[3 * segment + 1]


cdef void load_row(Model* m, int n) noexcept nogil:
    """Fill row = ytil_n, seen = 1 where observed, z and the list of active features."""
    cdef int s, k, S = m.S, K = m.K
    cdef const double* y = m.y + <size_t> n * S
    cdef const uint8_t* observed = m.observed + <size_t> n * m.D
    cdef const uint8_t* bits = m.Z + <size_t> n * m.C
    cdef const int* column = m.column
    cdef const double* inv_sd = m.inv_sd
    cdef double* row = m.row
    cdef double* seen = m.seen
    cdef double* z = m.z
    for s in range(S):
        row[s] = y[s] * inv_sd[s]
        seen[s] = observed[column[s]]
    for k in range(K):
        z[k] = bits[k]
    list_active(m)


cdef void list_active(Model* m) noexcept nogil:
    cdef int k, n = 0, K = m.K
    cdef const double* z = m.z
    cdef int* active = m.active
    for k in range(K):
        active[n] = k
        n += z[k] != 0.0
    m.n_active = n


cdef void add_statistics(Model* m, double sign) noexcept nogil:
    """ZZ += sign z'z,  L += sign z'ytil for the loaded row."""
    glfm_add_to_rows(m.n_active, m.active, m.width_S, sign, m.row, m.width_S, m.L)
    glfm_add_to_rows(m.n_active, m.active, padded(m.K), sign, m.z, m.width_C, m.ZZ)


cdef void accumulate(Model* m) noexcept nogil:
    """Compute ZZ and L from all rows. O(N S mean active features)."""
    cdef int n
    memset(m.ZZ, 0, <size_t> m.C * m.width_C * sizeof(double))
    memset(m.L, 0, <size_t> m.C * m.width_S * sizeof(double))
    for n in range(m.N):
        load_row(m, n)
        add_statistics(m, 1.0)


cdef int factorise(Model* m, int group) noexcept nogil:
    """chol = Cholesky factor of P of a group, row-major lower triangle. 0 when it succeeded."""
    cdef int i, j, info
    cdef char uplo = b'U'
    for i in range(m.K):
        for j in range(m.K):
            m.chol[i * m.C + j] = m.ZZ[i * m.width_C + j]
        m.chol[i * m.C + i] += 1.0 / (m.bias_var[group] if m.bias and i == 0 else m.tau[group])
    if m.K == 0:
        return 0
    dpotrf(&uplo, &m.K, m.chol, &m.C, &info)
    return info


cdef inline double* inverse(Model* m, int group) noexcept nogil:
    return m.A + <size_t> group * m.C * m.width_C


cdef int rebuild(Model* m) noexcept nogil:
    """A = P^-1 and M = A L from ZZ and L. O(G K^3 + K^2 S)."""
    cdef int group, i, j, info, segment, start, length
    cdef char uplo = b'U', no = b'N'
    cdef double one = 1.0, zero = 0.0
    cdef double* A
    if m.K == 0:
        return 0
    for group in range(m.G):
        info = factorise(m, group)
        if info != 0:
            return info
        dpotri(&uplo, &m.K, m.chol, &m.C, &info)
        if info != 0:
            return info
        A = inverse(m, group)
        memset(A, 0, <size_t> m.C * m.width_C * sizeof(double))
        for i in range(m.K):
            for j in range(i + 1):
                # column-major upper triangle = row-major lower triangle
                A[i * m.width_C + j] = m.chol[i * m.C + j]
                A[j * m.width_C + i] = m.chol[i * m.C + j]
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        length = m.segments[3 * segment + 1] - start
        group = m.segments[3 * segment + 2]
        if length > 0:
            dgemm(&no, &no, &length, &m.K, &m.K, &one, m.L + start, &m.width_S,
                  inverse(m, group), &m.width_C, &zero, m.M + start, &m.width_S)
    return 0


cdef void multiply_features(Model* m) noexcept nogil:
    """v = A z and q = z A z' of every group for the current z."""
    cdef int group, i
    cdef double* v
    cdef double q
    for group in range(m.G):
        v = m.v + group * m.width_C
        glfm_sum_rows(m.n_active, m.active, padded(m.K), inverse(m, group), m.width_C, v)
        q = 0.0
        for i in range(m.n_active):
            q += v[m.active[i]]
        m.q[group] = q


cdef void predict_row(Model* m) noexcept nogil:
    """mean = z M and r = ytil - mean for the current z."""
    cdef int s, S = m.S
    cdef const double* row = m.row
    cdef const double* mean = m.mean
    cdef double* r = m.r
    glfm_sum_rows(m.n_active, m.active, m.width_S, m.M, m.width_S, m.mean)
    for s in range(S):
        r[s] = row[s] - mean[s]


cdef void shift_inverse(Model* m, double sign) noexcept nogil:
    """Rank-one change of A and M when the loaded row enters (sign = 1) or leaves (-1).

    A -= sign v v' / (1 + sign q),  M += sign v r / (1 + sign q),  r = ytil - z M.
    """
    cdef int group, segment, start
    cdef double* v
    for group in range(m.G):
        v = m.v + group * m.width_C
        glfm_rank_one(m.K, padded(m.K), -sign / (1.0 + sign * m.q[group]), v, v, m.width_C,
                      inverse(m, group))
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        group = m.segments[3 * segment + 2]
        glfm_rank_one(m.K, segment_end(m, segment) - start,
                      sign / (1.0 + sign * m.q[group]), m.v + group * m.width_C, m.r + start,
                      m.width_S, m.M + start)


# ---------------------------------------------------------------- one row

cdef void move_feature(double* x, int width, int n, int k, int last, bint square) noexcept nogil:
    """Let row (and column, when square) `last` of x take the place of k; clear it."""
    cdef int i
    if k != last:
        for i in range(n):
            x[k * width + i] = x[last * width + i]
        if square:
            for i in range(n):
                x[i * width + k] = x[i * width + last]
    for i in range(n):
        x[last * width + i] = 0.0
    if square:
        for i in range(n):
            x[i * width + last] = 0.0


cdef void drop_column(Model* m, int k) noexcept nogil:
    """Remove feature k, which no row uses; the last column takes its place. O(N + K + S)."""
    cdef int last = m.K - 1, group
    cdef size_t n
    if k != last:
        for n in range(<size_t> m.N):
            m.Z[n * m.C + k] = m.Z[n * m.C + last]
    for n in range(<size_t> m.N):
        m.Z[n * m.C + last] = 0
    move_feature(m.M, m.width_S, m.S, k, last, False)
    move_feature(m.L, m.width_S, m.S, k, last, False)
    move_feature(m.ZZ, m.width_C, m.K, k, last, True)
    for group in range(m.G):
        move_feature(inverse(m, group), m.width_C, m.K, k, last, True)
        m.v[group * m.width_C + last] = 0.0
    m.z[k] = m.z[last]
    m.z[last] = 0.0
    m.K = last


cdef void add_column(Model* m) noexcept nogil:
    """Append a feature that only the current row uses: A gains tau on its diagonal, M zeros.

    v = A z gains tau z, and q = z A z' gains tau.
    """
    cdef int k = m.K, group
    for group in range(m.G):
        inverse(m, group)[k * m.width_C + k] = m.tau[group]
        m.v[group * m.width_C + k] = m.tau[group]
        m.q[group] += m.tau[group]
    m.z[k] = 1.0
    m.K += 1


cdef int remove_row(Model* m) noexcept nogil:
    """Take the loaded row out; drop the features that only it used and return their number.

    Leaves v = A z, q = z A z' and r = ytil - z M of the row without the dropped features.
    """
    cdef int k, group, n_single = 0
    m.stale = 0
    multiply_features(m)
    predict_row(m)
    add_statistics(m, -1.0)
    for group in range(m.G):
        if not 1.0 - m.q[group] > SINGULAR:
            m.stale = 1
    if not m.stale:
        shift_inverse(m, -1.0)
    for k in range(m.K - 1, m.bias - 1, -1):
        if m.ZZ[k * m.width_C + k] < 0.5:
            drop_column(m, k)
            n_single += 1
    if n_single > 0:
        list_active(m)
    if m.stale and rebuild(m) != 0:
        return -1
    multiply_features(m)
    predict_row(m)
    return n_single


cdef double log_evidence(Model* m, int group, double q, double R2, int n_extra) noexcept nogil:
    """-S_obs/2 log v - R2/(2 v),  v = 1 + q + n_extra tau: row n given all others, weights out."""
    cdef double v = 1.0 + q + n_extra * m.tau[group]
    return -0.5 * m.n_seen[group] * log(v) - 0.5 * R2 / v


cdef void start_evidence(Model* m, int n_single) noexcept nogil:
    """Fill the square R2 of the observed residual and the number seen per group; log evidence."""
    cdef int s, segment, start, end, group
    cdef const double* seen = m.seen
    cdef double n_seen
    for group in range(m.G):
        m.R2[group] = 0.0
        m.n_seen[group] = 0.0
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        end = segment_end(m, segment)
        group = m.segments[3 * segment + 2]
        m.R2[group] += glfm_weighted_square(end - start, m.seen + start, m.r + start)
        n_seen = 0.0
        for s in range(start, end):
            n_seen += seen[s]
        m.n_seen[group] += n_seen
    m.evidence[0] = 0.0
    for group in range(m.G):
        m.scaled[group] = m.R2[group] / (1.0 + m.q[group] + n_single * m.tau[group])
        m.evidence[0] += log_evidence(m, group, m.q[group], m.R2[group], n_single)


cdef inline double most_gained(Model* m, int group, double q, double R2, int n_extra) noexcept nogil:
    """An upper bound of log_evidence less that of the current bits, without a logarithm."""
    cdef double after = 1.0 + q + n_extra * m.tau[group]
    # log(after / now) >= 1 - now / after
    return 0.5 * (m.scaled[group] - (m.n_seen[group] * (q - m.q[group]) + R2) / after)


cdef void update_bit(Model* m, int k, int n_single) noexcept nogil:
    """Draw bit k of the loaded row from its conditional, the row's singletons kept in v.

    Flip when log odds > log(u / (1 - u)), u uniform, which is at least log(u); a bound of the
    log odds is enough for most.
    """
    cdef double d = 1.0 - 2.0 * m.z[k]  # +1 switches on, -1 off
    cdef double log_odds = d * m.prior[<int> m.ZZ[k * m.width_C + k]]
    cdef double most = log_odds, after = 0.0, u = 1.0
    cdef double cs, gs
    cdef double* M = m.M + <size_t> k * m.width_S
    cdef int segment, start, group, exponent, G = m.G
    for group in range(G):
        m.c[group] = m.q[group] + (2.0 * d * m.v[group * m.width_C + k]
                                   + inverse(m, group)[k * m.width_C + k])
        m.g[group] = m.R2[group]
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        glfm_dots(segment_end(m, segment) - start, M + start, m.r + start, m.seen + start,
                  &cs, &gs)
        m.g[m.segments[3 * segment + 2]] += gs - 2.0 * d * cs
    for group in range(m.G):
        m.g[group] = max(m.g[group], 0.0)
    if m.script == NULL:
        for group in range(m.G):
            most += most_gained(m, group, m.c[group], m.g[group], n_single)
        if most < NEVER:
            return
        u = random_standard_uniform(m.bitgen)
        frexp(u, &exponent)
        if most < LOG_2 * (exponent - 1):
            return
    for group in range(m.G):
        after += log_evidence(m, group, m.c[group], m.g[group], n_single)
    log_odds += after - m.evidence[0]
    if not choose_flip(m, 1.0 / (1.0 + exp(-log_odds)) if log_odds > -700.0 else 0.0, u):
        return
    m.z[k] += d
    m.evidence[0] = after
    for group in range(m.G):
        glfm_axpy(padded(m.K), d, inverse(m, group) + <size_t> k * m.width_C,
                  m.v + group * m.width_C)
        m.q[group] = m.c[group]
        m.R2[group] = m.g[group]
        m.scaled[group] = m.R2[group] / (1.0 + m.q[group] + n_single * m.tau[group])
    glfm_axpy(m.width_S, -d, M, m.r)


cdef void update_bits(Model* m, int n_single) noexcept nogil:
    """Visit the row's features in a fresh uniformly random order (a fixed one is biased)."""
    cdef int i, n = m.K - m.bias
    for i in range(n):
        m.order[i] = m.bias + i
    if m.script == NULL:
        shuffle(m.bitgen, n, m.order)
    else:
        scripted_shuffle(m, n)
    start_evidence(m, n_single)
    for i in range(n):
        update_bit(m, m.order[i], n_single)


cdef int choose_new_features(Model* m) noexcept nogil:
    """Draw the row's number of singletons:  p(k) ~ Poisson(k; alpha/N) evidence(k)."""
    cdef int k, group, n, largest = m.max_features - (m.K - m.bias)
    cdef double best, total
    if largest > MAX_NEW:
        largest = MAX_NEW
    if largest <= 0 or not m.alpha > 0.0:
        return 0
    n = largest + 1
    best = -1e308
    for k in range(n):
        m.new_weight[k] = m.new_prior[k]
        for group in range(m.G):
            m.new_weight[k] += log_evidence(m, group, m.q[group], m.R2[group], k)
        if m.new_weight[k] > best:
            best = m.new_weight[k]
        elif m.new_weight[k] < best - 40.0 and m.script == NULL:
            n = k + 1  # the rest is below 1e-17 of the largest
            break
    total = 0.0
    for k in range(n):
        m.new_weight[k] = exp(m.new_weight[k] - best)
        total += m.new_weight[k]
    for k in range(n):
        m.new_weight[k] /= total
    return choose_weighted(m, m.new_weight, n)


cdef void redraw_missing(Model* m, int n, int n_new) noexcept nogil:
    """y_ns ~ N(z M_s, sd_s^2 (1 + q + n_new tau)) at the row's missing cells."""
    cdef int s, segment, group
    cdef double scale
    cdef double* y = m.y + <size_t> n * m.S
    cdef const double* seen = m.seen
    cdef double* row = m.row
    cdef double* r = m.r
    for segment in range(m.n_segments):
        group = m.segments[3 * segment + 2]
        scale = sqrt(1.0 + m.q[group] + n_new * m.tau[group])
        for s in range(m.segments[3 * segment], m.segments[3 * segment + 1]):
            if seen[s] == 0.0:
                row[s] -= r[s]
                r[s] = scale * random_standard_normal(m.bitgen)
                row[s] += r[s]
                y[s] = row[s] * m.sd[s]


cdef int update_row(Model* m, int n) noexcept nogil:
    """One exact transition of row n: bits, new features, missing pseudo-observations."""
    cdef int k, n_single, n_new
    cdef uint8_t* bits = m.Z + <size_t> n * m.C
    load_row(m, n)
    n_single = remove_row(m)
    if n_single < 0:
        return 1
    update_bits(m, n_single)
    n_new = choose_new_features(m)
    if m.bitgen != NULL:
        redraw_missing(m, n, n_new)
    for k in range(n_new):
        add_column(m)
    for k in range(m.K):
        bits[k] = <uint8_t> m.z[k]
    list_active(m)
    add_statistics(m, 1.0)
    shift_inverse(m, 1.0)
    return 0


# ---------------------------------------------------------------- entry points

cdef void attach(
    Model* m, double[:, ::1] y, const uint8_t[:, ::1] observed, const int[::1] column,
    const int[:, ::1] segments, const double[::1] sd, const double[::1] tau,
    const double[::1] bias_var, uint8_t[:, ::1] Z, int n_columns, int bias, double alpha,
    double[::1] work, int[::1] iwork, bint fresh,
) noexcept:
    """Point to the arrays; `fresh` for a work space without meaning yet, else it is kept."""
    cdef int s
    m.N = <int> y.shape[0]
    m.S = <int> y.shape[1]
    m.D = <int> observed.shape[1]
    m.G = <int> tau.shape[0]
    m.C = <int> Z.shape[1]
    m.K = n_columns
    m.bias = bias
    m.max_features = m.C - bias
    m.n_segments = <int> segments.shape[0]
    m.alpha = alpha
    m.y = &y[0, 0]
    m.observed = &observed[0, 0]
    m.column = &column[0]
    m.segments = &segments[0, 0]
    m.sd = &sd[0]
    m.tau = &tau[0]
    m.bias_var = &bias_var[0]
    m.Z = &Z[0, 0]
    m.script = NULL
    m.bitgen = NULL
    partition(m, &work[0], &iwork[0])
    memset(&work[0], 0, <size_t> (work.shape[0] - m.N) * sizeof(double) if fresh else 0)
    for s in range(m.S):
        m.inv_sd[s] = 1.0 / sd[s]
    if not fresh:
        return
    for s in range(1, m.N):
        m.prior[s] = log(<double> s / (m.N - s))
    if alpha > 0.0:
        for s in range(MAX_NEW + 1):
            m.new_prior[s] = s * log(alpha / m.N) - lgamma(s + 1.0)


def sweep(
    double[:, ::1] y,               # in-out (N, S), missing cells redrawn
    const uint8_t[:, ::1] observed, # in (N, D)
    const int[::1] column,          # in (S,) column that owns a pseudo-column
    const int[:, ::1] segments,     # in (n, 3)
    const double[::1] sd,           # in (S,) noise standard deviations
    const double[::1] tau,          # in (G,)
    const double[::1] bias_var,     # in (G,)
    uint8_t[:, ::1] Z,              # in-out (N, C)
    int n_columns, int bias, double alpha,
    double[::1] work, int[::1] iwork,  # out; A, M, L, ZZ are left for `draw_weights`
    rng,
):
    """Update every row once. Return (columns in use, status); status 0 is success."""
    cdef Model m
    cdef int n, status = 0
    attach(&m, y, observed, column, segments, sd, tau, bias_var, Z, n_columns, bias, alpha,
           work, iwork, True)
    bit_generator = rng.bit_generator
    m.bitgen = <bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
    with bit_generator.lock, nogil:
        accumulate(&m)
        status = rebuild(&m)
        for n in range(m.N):
            if status != 0:
                break
            if n % REBUILD_EVERY == REBUILD_EVERY - 1:
                status = rebuild(&m)
                if status != 0:
                    break
            status = update_row(&m, n)
        if status == 0:
            status = rebuild(&m)
    return m.K, status


cdef void sum_squares(Model* m) noexcept nogil:
    """mean_s = sum over rows of y_ns^2."""
    cdef int s
    cdef size_t n
    memset(m.mean, 0, <size_t> m.S * sizeof(double))
    for n in range(<size_t> m.N):
        for s in range(m.S):
            m.mean[s] += m.y[n * m.S + s] * m.y[n * m.S + s]


cdef void rescale_unit_columns(Model* m, const uint8_t* unit_noise, const double* group,
                               double* factor) noexcept nogil:
    """Move every unit-noise column along its scale, the weights integrated out.

    x does not change when y and the variables that share its scale (utilities of the reference
    level, thresholds) are multiplied by one g > 0. Draw g from the density, with respect to
    dg / g, of where that leads:  g^n exp(-g^2 Q / 2),  Q = y'y - l'P^-1 l + the others' squares,
    n their number: g^2 Q is chi-square with n degrees of freedom [Liu and Sabatti 2000].
    Without it the scale of a probit column creeps.
    """
    cdef int s, k, d, first
    cdef size_t n
    cdef double total, count, g
    sum_squares(m)
    s = 0
    while s < m.S:
        d = m.column[s]
        first = s
        total = group[2 * d]
        count = group[2 * d + 1]
        while s < m.S and m.column[s] == d:
            total += m.mean[s]
            for k in range(m.K):
                total -= m.L[<size_t> k * m.width_S + s] * m.M[<size_t> k * m.width_S + s]
            count += m.N
            s += 1
        factor[d] = 1.0
        if unit_noise[d] and total > 0.0:
            g = sqrt(2.0 * random_standard_gamma(m.bitgen, 0.5 * count) / total)
            factor[d] = g
            scale_columns(m, first, s, g)


cdef void scale_columns(Model* m, int first, int end, double g) noexcept nogil:
    """Multiply pseudo-columns first..end-1 by g: y, and Z'y and P^-1 Z'y with it."""
    cdef int s, k
    cdef size_t n
    for n in range(<size_t> m.N):
        for s in range(first, end):
            m.y[n * m.S + s] *= g
    for k in range(m.K):
        for s in range(first, end):
            m.L[<size_t> k * m.width_S + s] *= g
            m.M[<size_t> k * m.width_S + s] *= g


cdef void draw_noise(Model* m, const uint8_t* unit_noise, double shape, double rate,
                     double* noise) noexcept nogil:
    """sd2_d | Y, Z with the weights out: InvGamma(shape + N S_d/2, rate + (y'y - l'P^-1 l)/2)."""
    cdef int s, k, d
    cdef size_t n
    cdef double total
    sum_squares(m)
    s = 0
    while s < m.S:
        d = m.column[s]
        total = 0.0
        n = 0
        while s < m.S and m.column[s] == d:
            total += m.mean[s]
            for k in range(m.K):
                total -= m.sd[s] * m.sd[s] * m.L[<size_t> k * m.width_S + s] * m.M[<size_t> k * m.width_S + s]
            n += 1
            s += 1
        if not unit_noise[d]:
            total = total if total > 0.0 else 0.0
            noise[d] = (rate + 0.5 * total) / random_standard_gamma(m.bitgen, shape + 0.5 * n * m.N)


cdef void draw_noise_given_weights(Model* m, const uint8_t* unit_noise, const double* B,
                                   double shape, double rate, double* noise) noexcept nogil:
    """sd2_d | Y, Z, B:  InvGamma(shape + N S_d/2, rate + |y - Z b|^2 / 2)."""
    cdef int s, k, d, i
    cdef size_t n
    cdef double total, r
    memset(m.mean, 0, <size_t> m.S * sizeof(double))
    for n in range(<size_t> m.N):
        load_row(m, <int> n)
        for s in range(m.S):
            m.r[s] = m.y[n * m.S + s]
        for i in range(m.n_active):
            glfm_axpy(m.S, -1.0, B + <size_t> m.active[i] * m.S, m.r)
        for s in range(m.S):
            m.mean[s] += m.r[s] * m.r[s]
    s = 0
    while s < m.S:
        d = m.column[s]
        total = 0.0
        n = 0
        while s < m.S and m.column[s] == d:
            total += m.mean[s]
            n += 1
            s += 1
        if not unit_noise[d]:
            noise[d] = (rate + 0.5 * total) / random_standard_gamma(m.bitgen, shape + 0.5 * n * m.N)


cdef int draw_matrix(Model* m, const double* scale, double* B) noexcept nogil:
    """b_s = sd_s M_s + scale_s L^-T eps  with  P = L L'."""
    cdef int segment, start, length, group, k, s, info
    cdef char right = b'R', upper = b'U', transposed = b'T', non_unit = b'N'
    cdef double one = 1.0
    for k in range(m.K):
        for s in range(m.S):
            B[<size_t> k * m.S + s] = random_standard_normal(m.bitgen)
    group = -1
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        length = m.segments[3 * segment + 1] - start
        if m.segments[3 * segment + 2] != group:
            group = m.segments[3 * segment + 2]
            info = factorise(m, group)
            if info != 0:
                return info
        if length > 0 and m.K > 0:
            dtrsm(&right, &upper, &transposed, &non_unit, &length, &m.K, &one, m.chol, &m.C,
                  B + start, &m.S)
    for k in range(m.K):
        for s in range(m.S):
            B[<size_t> k * m.S + s] = (m.sd[s] * m.M[<size_t> k * m.width_S + s]
                                       + scale[s] * B[<size_t> k * m.S + s])
    return 0


def draw_weights(
    double[:, ::1] y,               # in-out (N, S), unit-noise columns rescaled
    const uint8_t[:, ::1] observed, const int[::1] column,
    const int[:, ::1] segments, const double[::1] sd, const double[::1] tau,
    const double[::1] bias_var, uint8_t[:, ::1] Z, int n_columns, int bias,
    double[::1] work, int[::1] iwork,  # in: as `sweep` left them
    const uint8_t[::1] unit_noise,  # in (D,)
    const double[:, ::1] scale_group,  # in (D, 2)
    double[::1] factor,             # out (D,)
    double noise_shape, double noise_rate, int noise_scaled,
    double[::1] noise,              # in-out (D,) variances; those of unit columns stay
    double[:, ::1] B,               # out (C, S), rows past n_columns untouched
    rng,
):
    """Draw scales, noise variances and weights after a sweep. Return 0, or a LAPACK status.

    With the noise-scaled prior the variances are drawn with the weights integrated out, then
    the weights given them; otherwise weights first, then variances given the weights.
    """
    cdef Model m
    cdef int status, s
    cdef double* scale
    attach(&m, y, observed, column, segments, sd, tau, bias_var, Z, n_columns, bias, 0.0,
           work, iwork, False)
    bit_generator = rng.bit_generator
    m.bitgen = <bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
    with bit_generator.lock, nogil:
        scale = m.r
        rescale_unit_columns(&m, &unit_noise[0], &scale_group[0, 0], &factor[0])
        if noise_scaled:
            draw_noise(&m, &unit_noise[0], noise_shape, noise_rate, &noise[0])
            for s in range(m.S):
                scale[s] = sqrt(noise[m.column[s]])
        else:
            for s in range(m.S):
                scale[s] = m.sd[s]
        status = draw_matrix(&m, scale, &B[0, 0])
        if not noise_scaled and status == 0:
            draw_noise_given_weights(&m, &unit_noise[0], &B[0, 0], noise_shape, noise_rate,
                                     &noise[0])
    return status


def permutation(int n, rng):
    """Return a uniformly random permutation of 0..n-1, made as for a row. For tests."""
    order = np.arange(n, dtype=np.int32)
    cdef int[::1] view = order
    bit_generator = rng.bit_generator
    if n > 0:
        shuffle(<bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator"), n,
                &view[0])
    return order


def fill_eta(
    const uint8_t[:, ::1] Z,        # in (N, C)
    const double[:, ::1] B,         # in (C, S)
    int n_columns,
    double[:, ::1] out,             # out (N, S)
):
    """Compute eta = Z B. O(N (K + S mean active features))."""
    cdef Py_ssize_t n, k
    cdef int S = <int> out.shape[1]
    if S == 0:
        return
    with nogil:
        for n in range(out.shape[0]):
            memset(&out[n, 0], 0, <size_t> S * sizeof(double))
            for k in range(n_columns):
                if Z[n, k]:
                    glfm_axpy(S, 1.0, &B[k, 0], &out[n, 0])


def scripted_row(
    double[:, ::1] y, const uint8_t[:, ::1] observed, const int[::1] column,
    const int[:, ::1] segments, const double[::1] sd, const double[::1] tau,
    const double[::1] bias_var, uint8_t[:, ::1] Z, int n_columns, int bias, double alpha,
    double[::1] work, int[::1] iwork, int n, const int[::1] choices, int width,
):
    """Run the production update of row n with its random decisions taken from `choices`.

    For tests of exactness. Missing pseudo-observations keep their values. Past the end of
    `choices` option 0 is taken. Return (columns in use, status, decisions), a decision being
    (option taken, probabilities of all options).
    """
    cdef Model m
    cdef Script script
    cdef int status
    cdef int capacity = 4 * (<int> Z.shape[1]) + 8
    made = np.zeros(capacity, dtype=np.int32)
    probabilities = np.full((capacity, width), -1.0)
    cdef int[::1] made_view = made
    cdef double[:, ::1] probabilities_view = probabilities
    attach(&m, y, observed, column, segments, sd, tau, bias_var, Z, n_columns, bias, alpha,
           work, iwork, True)
    script.choices = &choices[0] if choices.shape[0] > 0 else NULL
    script.n_choices = <int> choices.shape[0]
    script.n_made = 0
    script.capacity = capacity
    script.width = width
    script.made = &made_view[0]
    script.probabilities = &probabilities_view[0, 0]
    m.script = &script
    accumulate(&m)
    status = rebuild(&m)
    if status == 0:
        status = update_row(&m, n)
    decisions = [
        (int(made[i]), [float(p) for p in probabilities[i] if p >= 0.0])
        for i in range(script.n_made)
    ]
    return m.K, status, decisions
