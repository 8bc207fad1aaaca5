"""Factors of precisions of series in time, whose values and velocities are Markov."""

from libc.math cimport sqrt
from libc.stdint cimport int64_t


def factor_series(
    const int64_t[::1] which,    # in (M,), the gap before each time, from 0
    const double[:, ::1] parts,  # in (U, 10) of each gap: own 00, 10, 11; cross 00, 01, 10, 11;
                                 #   onto 00, 10, 11
    double scale,                # by which all parts are multiplied
    const double[::1] seen,      # in (M,), added where values are
    double[:, ::1] factor,       # out (2 M, 4), of each column of L what is on and below the diagonal
):
    """Return whether Q = L L' is positive definite, and fill L, in LAPACK's lower band.

    The block of time n of Q is own of its gap, onto of the next and what is seen; that beside it,
    in the rows of n + 1, is -cross of the next gap. What is beyond the last row is of no meaning.
    O(M), without allocation.
    """
    cdef Py_ssize_t M = which.shape[0], n
    cdef const double* here
    cdef const double* later
    cdef double s00 = 0.0, s01 = 0.0, s10 = 0.0, s11 = 0.0
    cdef double d00, d10, d11, l00, l10, l11, a, b
    cdef bint fine = True
    if M == 0:
        return True
    with nogil:
        for n in range(M):
            here = &parts[which[n], 0]
            d00, d10, d11 = here[0] * scale + seen[n], here[1] * scale, here[2] * scale
            if n + 1 < M:
                later = &parts[which[n + 1], 0]
                d00 += later[7] * scale
                d10 += later[8] * scale
                d11 += later[9] * scale
            d00 -= s00 * s00 + s01 * s01
            if not d00 > 0.0:
                fine = False
                break
            l00 = sqrt(d00)
            l10 = (d10 - s10 * s00 - s11 * s01) / l00
            d11 -= s10 * s10 + s11 * s11 + l10 * l10
            if not d11 > 0.0:
                fine = False
                break
            l11 = sqrt(d11)
            if n + 1 < M:
                a, b = -scale / l00, 1.0 / l11
                s00, s10 = later[3] * a, later[5] * a
                s01 = (-scale * later[4] - s00 * l10) * b
                s11 = (-scale * later[6] - s10 * l10) * b
            factor[2 * n, 0], factor[2 * n, 1] = l00, l10
            factor[2 * n, 2], factor[2 * n, 3] = s00, s10
            factor[2 * n + 1, 0], factor[2 * n + 1, 1] = l11, s01
            factor[2 * n + 1, 2], factor[2 * n + 1, 3] = s11, 0.0
    return fine
