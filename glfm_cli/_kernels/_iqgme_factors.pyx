"""The factors of rows under several low-rank laws: means, second moments, what they add to log p.

For row i under law h, with o standing for the entrywise product of symmetric matrices,

    Q = base_h + psi_h unit_i o G_h;  cov = (Q + W_h where labelled)^-1
    mean = cov linear;  ss = cov + mean mean'
    value = own' mean - (1/2) (tr(Q ss) - L - log|cov|)

Symmetric matrices are packed: the upper triangle, row by row, L (L + 1) / 2 numbers.
"""

from libc.math cimport INFINITY, log, sqrt
from libc.string cimport memcmp

include "_inverse.pxi"


def place_factors(
    const double[:, ::1] base,        # in (H, L (L + 1) / 2)
    const double[::1] psi,            # in (H,)
    const double[:, ::1] G,           # in (H, L (L + 1) / 2)
    const double[:, ::1] unit,        # in (b, L (L + 1) / 2)
    const double[:, :, ::1] W,        # in (H, L, L)
    const unsigned char[::1] labelled, # in (b,)
    const double[:, :, ::1] own,      # in (H, b, L)
    const double[:, :, ::1] linear,   # in (H, b, L)
    double[:, :, ::1] mean,           # out (H, b, L)
    double[:, :, ::1] ss,             # out (H, b, L (L + 1) / 2)
    double[:, ::1] value,             # out (H, b)
    double[:, ::1] trace,             # out (H, b) tr(W cov) where labelled, else 0
    double[::1] Q,                    # scratch (L^2,)
    double[::1] scratch,              # scratch (L^2,)
    double[::1] precision,            # scratch (L (L + 1) / 2,)
):
    """Fill everything. O(H b L^3). Return 0, or 1 when a matrix is not positive definite."""
    cdef Py_ssize_t h, i, k, l, at, H = mean.shape[0], n = mean.shape[1], L = mean.shape[2]
    cdef Py_ssize_t M = unit.shape[1]
    cdef bint again
    cdef double t, w = 0.0, log_det = 0.0, quadratic, total
    with nogil:
        for h in range(H):
            for i in range(n):
                # Rows without gaps, or with the same ones, follow one another and share cov.
                again = i > 0 and labelled[i] == labelled[i - 1] and memcmp(
                    &unit[i, 0], &unit[i - 1, 0], M * sizeof(double)) == 0
                if not again:
                    at = 0
                    for k in range(L):
                        for l in range(k, L):
                            t = base[h, at] + psi[h] * unit[i, at] * G[h, at]
                            precision[at] = t
                            if labelled[i]:
                                t += W[h, k, l]
                            Q[l * L + k] = t
                            at += 1
                    log_det = invert(L, &Q[0], &scratch[0])
                    if log_det == INFINITY:
                        with gil:
                            return 1
                    w = 0.0
                    if labelled[i]:
                        for k in range(L):
                            for l in range(L):
                                w += W[h, k, l] * Q[k * L + l]
                for k in range(L):
                    t = 0.0
                    for l in range(L):
                        t += Q[k * L + l] * linear[h, i, l]
                    mean[h, i, k] = t
                total = quadratic = 0.0
                at = 0
                for k in range(L):
                    total += own[h, i, k] * mean[h, i, k]
                    for l in range(k, L):
                        t = Q[k * L + l] + mean[h, i, k] * mean[h, i, l]
                        quadratic += precision[at] * t * (1.0 if k == l else 2.0)
                        ss[h, i, at] = t
                        at += 1
                trace[h, i] = w
                value[h, i] = total - 0.5 * (quadratic - L + log_det)
    return 0
