"""Gaps of rows under several normal laws: covariances, means, sums.

Rows stand in blocks; in a block those of one pattern (the same missing) follow one another:

    start (G + 1,)      rows of pattern g are start[g] .. start[g + 1] - 1 of the block
    missing_start (G + 1,)  its missing are missing[missing_start[g] .. missing_start[g + 1] - 1], c of them
    cov_start (G + 1,)  its covariance (c, c) begins at cov_start[g] of a law's row in `cov`

For every law h: Q = A_h at the missing (plus B_h, plus a diagonal), cov = Q^-1.
"""

from libc.math cimport isfinite

cdef extern from "_vector.h" nogil:
    void glfm_invert(int c, double* Q, double* U, double* log_det) noexcept

cdef enum:
    LANES = 8  # GLFM_LANES


def factor_missing(
    const Py_ssize_t[::1] missing_start,    # in (G + 1,)
    const Py_ssize_t[::1] cov_start,    # in (G + 1,)
    const Py_ssize_t[::1] missing,         # in (sum of c,)
    const unsigned char[::1] second,    # in (G,) whether B is added
    const double[::1] diagonal,         # in (sum of c,) added to the diagonal
    const double[:, :, ::1] A,          # in (H, P, P)
    const double[:, :, :] B,            # in (H, P, P)
    const unsigned char[:, ::1] needed,     # in (H, G) of which laws and patterns
    double[:, ::1] cov,                 # out (H, sum of c^2), left as it is where not needed
    double[:, ::1] log_det,             # out (H, G) log|Q|, 0 where not needed
    double[::1] scratch,                # scratch (16 largest c^2,)
):
    """Fill covariances and determinants. O(H sum of c^3). Return 0, or 1 on failure.

    Several matrices are inverted at once, the smaller ones with an identity beyond their own.
    """
    cdef Py_ssize_t h, g, i, j, l, k, c, n = 0, most = 0, G = second.shape[0], H = A.shape[0]
    cdef Py_ssize_t P = A.shape[1]
    cdef Py_ssize_t[LANES] law, pattern, size
    cdef (const Py_ssize_t*)[LANES] places
    cdef (const double*)[LANES] own
    cdef double[LANES] logs
    cdef double* Q = &scratch[0]
    cdef double* to
    with nogil:
        for k in range(G * H):
            h, g = k // G, k % G
            log_det[h, g] = 0.0
            c = missing_start[g + 1] - missing_start[g]
            if c > 0 and needed[h, g]:
                law[n], pattern[n], size[n] = h, g, c
                own[n], places[n] = &A[h, 0, 0], &missing[missing_start[g]]
                n += 1
                most = max(most, c)
            if n == 0 or (n < LANES and k < G * H - 1):
                continue
            for i in range(most):
                for j in range(i, most):
                    to = &Q[(i * most + j) * LANES]
                    for l in range(LANES):
                        to[l] = i == j
                    for l in range(n):
                        if j < size[l]:
                            to[l] = own[l][places[l][i] * P + places[l][j]]
            for l in range(n):
                i = missing_start[pattern[l]]
                add_seen(&diagonal[i], size[l], places[l], second[pattern[l]], B[law[l]], &Q[l],
                         most)
            glfm_invert(<int> most, Q, Q + most * most * LANES, logs)
            for l in range(n):
                h, g, c = law[l], pattern[l], size[l]
                if not isfinite(logs[l]):
                    with gil:
                        return 1
                log_det[h, g] = logs[l]
                to = &cov[h, cov_start[g]]
                for i in range(c):
                    for j in range(i + 1):
                        to[i * c + j] = to[j * c + i] = Q[(i * most + j) * LANES + l]
            n = most = 0
    return 0


cdef void add_seen(
    const double* diagonal, Py_ssize_t c, const Py_ssize_t* m, bint second,
    const double[:, :] B, double* Q, Py_ssize_t ld
) noexcept nogil:
    """Add the diagonal to one of the matrices in Q, and B."""
    cdef Py_ssize_t i, j
    for i in range(c):
        Q[(i * ld + i) * LANES] += diagonal[i]
        if second:
            for j in range(i, c):
                Q[(i * ld + j) * LANES] += B[m[i], m[j]]


def fill_missing(
    const Py_ssize_t[::1] start,        # in (G + 1,)
    const Py_ssize_t[::1] missing_start,    # in (G + 1,)
    const Py_ssize_t[::1] cov_start,    # in (G + 1,)
    const Py_ssize_t[::1] missing,         # in (sum of c,)
    const double[:, ::1] cov,           # in (H, sum of c^2)
    const double[:, :, ::1] linear,     # in (H, b, P)
    double[:, :, ::1] x,                # out (H, b, P), at missing
):
    """Put cov times the linear term into the missing of x. O(H b c^2)."""
    cdef Py_ssize_t h, g, i, j, n, c, G = start.shape[0] - 1, H = cov.shape[0]
    cdef double t
    cdef const double* Q
    cdef const Py_ssize_t* m
    with nogil:
        for h in range(H):
            for g in range(G):
                c = missing_start[g + 1] - missing_start[g]
                if c == 0:
                    continue
                m = &missing[missing_start[g]]
                Q = &cov[h, cov_start[g]]
                for n in range(start[g], start[g + 1]):
                    if Q[0] == 0.0:  # not needed
                        for i in range(c):
                            x[h, n, m[i]] = 0.0
                        continue
                    for i in range(c):
                        t = 0.0
                        for j in range(c):
                            t += Q[i * c + j] * linear[h, n, m[j]]
                        x[h, n, m[i]] = t


def add_covariances(
    const Py_ssize_t[::1] missing_start,    # in (G + 1,)
    const Py_ssize_t[::1] cov_start,    # in (G + 1,)
    const Py_ssize_t[::1] missing,         # in (sum of c,)
    const double[:, ::1] cov,           # in (H, sum of c^2)
    const double[:, ::1] weight,        # in (H, G)
    double[:, :, ::1] total,            # in-out (H, P, P), symmetric
):
    """Add weighted covariances to their places. O(H sum of c^2)."""
    cdef Py_ssize_t h, g, i, j, c, G = missing_start.shape[0] - 1, H = cov.shape[0]
    cdef Py_ssize_t at, P = total.shape[1]
    cdef double w
    cdef const double* Q
    cdef const Py_ssize_t* m
    with nogil:
        for h in range(H):
            for g in range(G):
                at = missing_start[g]
                c = missing_start[g + 1] - at
                w = weight[h, g]
                if c == 0 or w == 0.0:
                    continue
                m = &missing[at]
                Q = &cov[h, cov_start[g]]
                for i in range(c):
                    for j in range(i + 1):
                        total[h, m[i], m[j]] += w * Q[i * c + j]
            for i in range(P):
                for j in range(i):
                    total[h, j, i] = total[h, i, j]
