# Noise variances, scales and weights given all bits. Part of `_glfm.pyx`.

cdef void sum_squares(Model* m) noexcept nogil:
    """mean_s = sum over rows of y_ns^2."""
    cdef int s, S = m.S
    cdef size_t n
    cdef const double* y
    cdef double* mean = m.mean
    memset(mean, 0, <size_t> S * sizeof(double))
    for n in range(<size_t> m.N):
        y = m.y + n * S
        for s in range(S):
            mean[s] += y[s] * y[s]


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
        g = 1.0
        if unit_noise[d] and total > 0.0:
            g = sqrt(2.0 * random_standard_gamma(m.bitgen, 0.5 * count) / total)
        factor[d] = g
        for first in range(first, s):
            m.r[first] = g
    scale_columns(m, m.r)


cdef void scale_columns(Model* m, const double* g) noexcept nogil:
    """Multiply pseudo-columns by g (S,): y, row by row, and Z'y and P^-1 Z'y with it.

    mean_s = sum over rows of the new y_ns^2.
    """
    cdef int s, S = m.S
    cdef size_t n, k
    cdef double* y
    cdef double* mean = m.mean
    memset(mean, 0, <size_t> S * sizeof(double))
    for n in range(<size_t> m.N):
        y = m.y + n * S
        for s in range(S):
            y[s] *= g[s]
            mean[s] += y[s] * y[s]
    for k in range(<size_t> m.K):
        for s in range(S):
            m.L[k * m.width_S + s] *= g[s]
            m.M[k * m.width_S + s] *= g[s]


cdef void draw_noise(Model* m, const uint8_t* unit_noise, double shape, double rate,
                     double* noise) noexcept nogil:
    """sd2_d | Y, Z with the weights out: InvGamma(shape + N S_d/2, rate + (y'y - l'P^-1 l)/2).

    The squares are those that `scale_columns` left.
    """
    cdef int s, k, d
    cdef size_t n
    cdef double total
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
