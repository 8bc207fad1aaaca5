# The model's state in work space, and its sufficient statistics. Part of `_glfm.pyx`.

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
    int N, D, S, G, C, K, bias, max_features, n_segments, n_active, n_before, n_flipped, n_missing
    bint taken_out  # whether L and ZZ are without the loaded row
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
    double* row_before  # as L has it
    double* z_before    # as ZZ has it
    double* seen
    double* r
    double* weighted  # seen r
    double* mean
    double* dots      # (G, width_C) M_k . weighted
    double* squares   # (G, width_C) M_k . M_k over what is seen
    double* diagonal  # (G, width_C) of A
    double* odds      # (width_C,) prior log odds of flips
    double* gain      # (width_C,) bounds of their log odds
    double* limit     # (width_C,) what the log odds of a flip must be above
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
    int* before   # the active ones as ZZ and L have them
    int* flipped
    int* missing  # pseudo-columns that are not seen
    int* order
    int* open     # places in `order` of bits that may flip
    int* count  # of each feature, in the rows but the one that is being updated
    bitgen_t* bitgen
    Script* script


cdef inline int aligned(const double* p) noexcept nogil:
    """Return how many doubles further a whole vector begins: one across cache lines is slow."""
    return <int> (-(<uintptr_t> p // sizeof(double)) % GLFM_LANES)


cdef inline int padded(int n) noexcept nogil:
    return (n + GLFM_LANES - 1) // GLFM_LANES * GLFM_LANES


def work_sizes(int N, int C, int S, int G):
    """Return the lengths of the float and integer work arrays."""
    cdef int width_C = padded(C), width_S = padded(S)
    floats = (GLFM_LANES + (G + 1) * C * width_C + 2 * C * width_S + (4 * G + 5) * width_C
              + 7 * width_S + C * C + 6 * G + 2 * (MAX_NEW + 1) + 1 + N)
    return floats, 6 * C + S


cdef void partition(Model* m, double* work, int* iwork) noexcept nogil:
    m.width_C = padded(m.C)
    m.width_S = padded(m.S)
    work += aligned(work)
    m.A = work; work += m.G * m.C * m.width_C
    m.M = work; work += m.C * m.width_S
    m.L = work; work += m.C * m.width_S
    m.ZZ = work; work += m.C * m.width_C
    m.v = work; work += m.G * m.width_C
    m.dots = work; work += m.G * m.width_C
    m.squares = work; work += m.G * m.width_C
    m.diagonal = work; work += m.G * m.width_C
    m.odds = work; work += m.width_C
    m.gain = work; work += m.width_C
    m.limit = work; work += m.width_C
    m.z = work; work += m.width_C
    m.z_before = work; work += m.width_C
    m.inv_sd = work; work += m.width_S
    m.row = work; work += m.width_S
    m.row_before = work; work += m.width_S
    m.seen = work; work += m.width_S
    m.r = work; work += m.width_S
    m.weighted = work; work += m.width_S
    m.mean = work; work += m.width_S
    m.chol = work; work += m.C * m.C
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
    m.count = iwork + 2 * m.C
    m.before = iwork + 3 * m.C
    m.flipped = iwork + 4 * m.C
    m.open = iwork + 5 * m.C
    m.missing = iwork + 6 * m.C


cdef inline int segment_end(const Model* m, int segment) noexcept nogil:
    """Return where a segment ends; a single one runs over the padding, for whole vectors."""
    return m.width_S if m.n_segments == 1 else m.segments[3 * segment + 1]


cdef void load_row(Model* m, int n) noexcept nogil:
    """Fill row = ytil_n, seen = 1 where observed, z and the lists of what is missing and active."""
    cdef int s, k, n_missing = 0, n_active = 0, S = m.S, K = m.K
    cdef bint here
    cdef const uint8_t* observed = m.observed + <size_t> n * m.D
    cdef const uint8_t* bits = m.Z + <size_t> n * m.C
    cdef const int* column = m.column
    cdef double* seen = m.seen
    cdef double* z = m.z
    cdef int* missing = m.missing
    cdef int* active = m.active
    glfm_multiply(S, m.y + <size_t> n * S, m.inv_sd, m.row)
    for s in range(S):
        here = observed[column[s]]
        seen[s] = here
        missing[n_missing] = s
        n_missing += not here
    for k in range(K):
        z[k] = bits[k]
        active[n_active] = k
        n_active += bits[k]
    m.n_missing, m.n_active = n_missing, n_active


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
    """Compute ZZ, L and the counts from all rows. O(N S mean active features)."""
    cdef int n, k
    memset(m.ZZ, 0, <size_t> m.C * m.width_C * sizeof(double))
    memset(m.L, 0, <size_t> m.C * m.width_S * sizeof(double))
    for n in range(m.N):
        load_row(m, n)
        add_statistics(m, 1.0)
    for k in range(m.K):
        m.count[k] = <int> m.ZZ[k * m.width_C + k]


cdef int factorise(Model* m, int group) noexcept nogil:
    """chol = Cholesky factor of P of a group, row-major lower triangle. 0 when it succeeded."""
    cdef int i, j, info
    cdef char uplo = b'U'
    for i in range(m.K):
        for j in range(m.K):
            m.chol[i * m.C + j] = m.ZZ[i * m.width_C + j]
        m.chol[i * m.C + i] += 1.0 / (m.bias_var[group] if i < m.bias else m.tau[group])
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
    """mean = z M, r = ytil - mean, and where it is seen, for the current z."""
    glfm_sum_rows(m.n_active, m.active, m.width_S, m.M, m.width_S, m.mean)
    glfm_subtract(m.width_S, m.row, m.mean, m.r)
    glfm_multiply(m.width_S, m.seen, m.r, m.weighted)


cdef void fill_dots(Model* m, int n, const int* features) noexcept nogil:
    """dots_k = M_k . (seen r) for some features k."""
    cdef int segment, start, group, i
    for group in range(m.G):
        for i in range(n):
            m.dots[group * m.width_C + features[i]] = 0.0
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        glfm_add_dots(n, features, segment_end(m, segment) - start, m.M + start, m.width_S,
                      m.weighted + start, m.dots + m.segments[3 * segment + 2] * m.width_C)


cdef void move_means(Model* m, double a) noexcept nogil:
    """M += a v r, and on the way `dots` and `squares`."""
    cdef int segment, start, group
    memset(m.dots, 0, <size_t> 2 * m.G * m.width_C * sizeof(double))  # and squares
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        group = m.segments[3 * segment + 2]
        glfm_rank_one_dots(m.K, segment_end(m, segment) - start, a, m.v + group * m.width_C,
                           m.r + start, m.seen + start, m.weighted + start, m.width_S,
                           m.M + start, m.dots + group * m.width_C, m.squares + group * m.width_C)


cdef void take_out(Model* m) noexcept nogil:
    """Rank-one change of A and M when the loaded row leaves; v, q and r become those without it.

    A += v v' / (1 - q),  M -= v r / (1 - q);  then v, q and r are as before over 1 - q.
    """
    cdef int group, segment, start
    cdef double scale
    cdef double* v
    for group in range(m.G):
        v = m.v + group * m.width_C
        glfm_rank_one(m.K, padded(m.K), 1.0 / (1.0 - m.q[group]), v, v, m.width_C,
                      inverse(m, group))
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        glfm_scale(segment_end(m, segment) - start, 1.0 / (1.0 - m.q[m.segments[3 * segment + 2]]),
                   m.r + start)
    glfm_multiply(m.width_S, m.seen, m.r, m.weighted)
    move_means(m, -1.0)
    for group in range(m.G):
        v = m.v + group * m.width_C
        scale = 1.0 / (1.0 - m.q[group])
        glfm_scale(padded(m.K), scale, v)
        m.q[group] *= scale


cdef void put_in(Model* m) noexcept nogil:
    """Rank-one change of A and M when the loaded row enters.

    A -= v v' / (1 + q),  M += v r / (1 + q),  r = ytil - z M.
    """
    cdef int group, segment, start
    cdef double* v
    for group in range(m.G):
        v = m.v + group * m.width_C
        glfm_rank_one(m.K, padded(m.K), -1.0 / (1.0 + m.q[group]), v, v, m.width_C,
                      inverse(m, group))
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        group = m.segments[3 * segment + 2]
        glfm_rank_one(m.K, segment_end(m, segment) - start, 1.0 / (1.0 + m.q[group]),
                      m.v + group * m.width_C, m.r + start, m.width_S, m.M + start)
