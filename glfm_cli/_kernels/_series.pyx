"""Series in time whose values and velocities are Markov: their precisions, and laws given values.

    Q = (precision of x) scale + diag(seen, 0),    x = (u, sqrt(l k) du/dt) at M times of groups

is of 2 x 2 blocks, of which those on the diagonal and beside it are not 0. Its factor L is in
LAPACK's lower band: (2 M, 4), of each column what is on and below the diagonal; what is beyond the
last row is of no meaning. At the first time of a group the gap is infinite, so that groups have
factors apart. All is O(M) beside what is said, without allocation.
"""

from libc.math cimport exp, expm1, fmax, log, sqrt
from libc.stdint cimport int64_t

cdef enum:
    SIZE = 10  # column of `parts` that has the determinant of P^-1


def fill_steps(
    const double[::1] gaps,  # in (U,), infinite ones among them
    double slow,             # 1 / l, and
    double fast,             # 1 / k, above it
    double closest,          # what gaps below it are taken for
    double[:, ::1] parts,    # out (U, 11) of each gap: P 00, 10, 11; P A 00, 01, 10, 11;
                             #   A' P A 00, 10, 11; the determinant of P^-1
):
    """Fill what gaps give the precision of x:  x_n = A_n x_(n-1) + N(0, P_n^-1).

    A = exp(F gap),  F = [0, 1; -1, -(slow + fast) / r] r,  r = sqrt(slow fast);  x ~ N(0, I) at
    first. O(U).
    """
    cdef Py_ssize_t i
    cdef double r = sqrt(slow * fast), gap, one, both, a, b, d, first, other, beside, size
    cdef double p00, p10, p11, c00, c01, c10, c11
    with nogil:
        for i in range(gaps.shape[0]):
            gap = fmax(gaps[i], closest)
            one = exp(-slow * gap)
            both = one * -expm1((slow - fast) * gap) / (fast - slow)
            a, b, d = one + slow * both, r * both, one - fast * both  # and -b below a
            first, other, beside = 1.0 - a * a - b * b, 1.0 - b * b - d * d, b * (a - d)
            size = first * other - beside * beside
            p00, p10, p11 = other / size, -beside / size, first / size
            c00, c01 = p00 * a - p10 * b, p00 * b + p10 * d
            c10, c11 = p10 * a - p11 * b, p10 * b + p11 * d
            parts[i, 0], parts[i, 1], parts[i, 2] = p00, p10, p11
            parts[i, 3], parts[i, 4], parts[i, 5], parts[i, 6] = c00, c01, c10, c11
            parts[i, 7] = a * c00 - b * c10
            parts[i, 8] = b * c00 + d * c10
            parts[i, 9] = b * c01 + d * c11
            parts[i, SIZE] = size


def fill_blocks(
    const int64_t[::1] which,    # in (M,), the gap before each time, from 0
    const double[:, ::1] parts,  # in (U, 11), of `fill_steps`
    double scale,                # by which all is multiplied
    double root,                 # sqrt(l k), by which velocities are
    double[:, :, ::1] diagonal,  # out (2, 2, M)
    double[:, :, ::1] below,     # out (2, 2, M), in row n + 1 and column n; the last is 0
):
    """Fill the precision of (u, du/dt)."""
    cdef Py_ssize_t M = which.shape[0], n
    cdef const double* here
    cdef const double* later
    cdef double beside = scale * root, both = scale * root * root
    with nogil:
        for n in range(M):
            here = &parts[which[n], 0]
            diagonal[0, 0, n], diagonal[1, 0, n] = scale * here[0], beside * here[1]
            diagonal[1, 1, n] = both * here[2]
            if n + 1 < M:
                later = &parts[which[n + 1], 0]
                diagonal[0, 0, n] += scale * later[7]
                diagonal[1, 0, n] += beside * later[8]
                diagonal[1, 1, n] += both * later[9]
                below[0, 0, n], below[0, 1, n] = -scale * later[3], -beside * later[4]
                below[1, 0, n], below[1, 1, n] = -beside * later[5], -both * later[6]
            else:
                below[0, 0, n] = below[0, 1, n] = below[1, 0, n] = below[1, 1, n] = 0.0
            diagonal[0, 1, n] = diagonal[1, 0, n]


def factor_series(
    const int64_t[::1] which,    # in (M,), the gap before each time, from 0
    const double[:, ::1] parts,  # in (U, 11), of `fill_steps`
    double scale,
    const double[::1] seen,      # in (M,)
    double[:, ::1] factor,       # out (2 M, 4), L
):
    """Fill L, and return the log of the ratio of determinants of Q and of what it is unseen.

    None where Q is not positive definite.
    """
    cdef Py_ssize_t M = which.shape[0], n
    cdef const double* here
    cdef const double* later
    cdef double s00 = 0.0, s01 = 0.0, s10 = 0.0, s11 = 0.0
    cdef double d00, d10, d11, l00, l10, l11, a, b
    cdef double log_ratio = 0.0, ratio = 1.0, unit = 1.0 / scale
    cdef bint fine = True
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
            a = 1.0 / l00
            l10 = (d10 - s10 * s00 - s11 * s01) * a
            d11 -= s10 * s10 + s11 * s11 + l10 * l10
            if not d11 > 0.0:
                fine = False
                break
            l11 = sqrt(d11)
            ratio *= d00 * unit * (d11 * unit) * here[SIZE]
            if not 1e-100 < ratio < 1e100:  # a logarithm of many factors at once
                log_ratio += log(ratio)
                ratio = 1.0
            if n + 1 < M:
                a, b = -scale * a, 1.0 / l11
                s00, s10 = later[3] * a, later[5] * a
                s01 = (-scale * later[4] - s00 * l10) * b
                s11 = (-scale * later[6] - s10 * l10) * b
            factor[2 * n, 0], factor[2 * n, 1] = l00, l10
            factor[2 * n, 2], factor[2 * n, 3] = s00, s10
            factor[2 * n + 1, 0], factor[2 * n + 1, 1] = l11, s01
            factor[2 * n + 1, 2], factor[2 * n + 1, 3] = s11, 0.0
    return log_ratio + log(ratio) if fine else None


def solve_lower(
    const double[:, ::1] factor,  # in (2 M, 4), L
    double[::1] x,                # in-out (2 M,)
):
    """Multiply x by L^-1."""
    cdef Py_ssize_t n
    cdef double before = 0.0, earlier = 0.0, third = 0.0, now
    with nogil:
        for n in range(x.shape[0]):
            now = x[n]
            if n > 0:
                now -= factor[n - 1, 1] * before
            if n > 1:
                now -= factor[n - 2, 2] * earlier
            if n > 2:
                now -= factor[n - 3, 3] * third
            now *= 1.0 / factor[n, 0]  # which waits for no other row
            before, earlier, third = now, before, earlier
            x[n] = now


def solve_upper(
    const double[:, ::1] factor,  # in (2 M, 4), L
    double[::1] x,                # in-out (2 M,)
):
    """Multiply x by L'^-1."""
    cdef Py_ssize_t n
    cdef double after = 0.0, later = 0.0, third = 0.0, now
    with nogil:
        for n in range(x.shape[0] - 1, -1, -1):
            now = x[n]
            if n + 1 < x.shape[0]:
                now -= factor[n, 1] * after
            if n + 2 < x.shape[0]:
                now -= factor[n, 2] * later
            if n + 3 < x.shape[0]:
                now -= factor[n, 3] * third
            now *= 1.0 / factor[n, 0]
            after, later, third = now, after, later
            x[n] = now


cdef void add_time(
    const double* before,  # two columns of L each, of the time before
    const double* here,
    double seen,
    const double* x,       # (w - 1,)
    double b,
    Py_ssize_t w,
    double* half,          # in-out (2, w), L^-1 (seen x, b) at the time before; at this one
    double* gram,          # in-out (w, w), on and above its diagonal
) noexcept nogil:
    """Add what one time says of X and e to [X e]' V^-1 [X e], but for e' seen e. O(w^2)."""
    cdef Py_ssize_t i, j
    cdef double value, velocity, from_value, scaled
    cdef double of_value = 1.0 / here[0], of_velocity = 1.0 / here[4]
    cdef double* velocities = half + w
    for j in range(w):
        value = seen * x[j] if j + 1 < w else b
        value = (value - before[2] * half[j] - before[5] * velocities[j]) * of_value
        velocity = -before[3] * half[j] - before[6] * velocities[j] - here[1] * value
        half[j], velocities[j] = value, velocity * of_velocity
    for i in range(w):
        value, velocity = half[i], velocities[i]
        from_value = x[i] if i + 1 < w else 0.0
        scaled = seen * from_value
        for j in range(i, w - 1):
            gram[i * w + j] += scaled * x[j] - value * half[j] - velocity * velocities[j]
        gram[i * w + w - 1] += from_value * b - value * half[w - 1] - velocity * velocities[w - 1]


def fill_lines(
    const double[:, ::1] factor,  # in (2 M, 4), L
    const double[::1] seen,       # in (M,)
    const double[::1] b,          # in (M,), seen e
    const double[:, ::1] X,       # in (M, w - 1)
    const int64_t[::1] code,      # in (M,) of groups, in order
    double[:, ::1] half,          # scratch (2, w), 0
    double[:, :, ::1] grams,      # out (n, w, w), 0 before
):
    """Fill [X e]' V^-1 [X e] of each group, but for e' seen e.

    V = (covariance of u) + diag(1 / seen), and so X' V^-1 X = X' seen X - |L^-1 (seen X)|^2.
    O(M w^2).
    """
    cdef Py_ssize_t w = half.shape[1], n, g, i, j
    with nogil:
        for n in range(seen.shape[0]):
            add_time(
                &factor[2 * max(n - 1, 0), 0], &factor[2 * n, 0], seen[n],
                &X[n, 0] if w > 1 else NULL, b[n], w, &half[0, 0], &grams[code[n], 0, 0],
            )
        for g in range(grams.shape[0]):
            for i in range(w):
                for j in range(i):
                    grams[g, i, j] = grams[g, j, i]


def fill_shared(
    const double[:, ::1] factor,  # in (2 M, 4), L
    const double[::1] seen,       # in (M,)
    const double[::1] b,          # in (M,), seen e
    const double[:, ::1] X,       # in (M, w - 1), first what each group has weights of its own for
    const double[::1] prior,      # in (k,), the precisions of these weights
    const int64_t[::1] code,      # in (M,) of groups, in order
    double[:, ::1] half,          # scratch (2, w), 0
    double[:, ::1] gram,          # scratch (w, w), 0
    double[:, ::1] whole,         # out (w, w), 0 before; from k on is used
):
    """Fill the sum over groups of what `fill_lines` says, their own weights integrated out.

    O(M w^2).
    """
    cdef Py_ssize_t w = half.shape[1], k = prior.shape[0], M = seen.shape[0], n, p, i, j
    cdef double gain
    with nogil:
        for n in range(M):
            add_time(
                &factor[2 * max(n - 1, 0), 0], &factor[2 * n, 0], seen[n],
                &X[n, 0] if w > 1 else NULL, b[n], w, &half[0, 0], &gram[0, 0],
            )
            if n + 1 < M and code[n + 1] == code[n]:
                continue
            for p in range(k):
                gram[p, p] += prior[p]
                for i in range(p + 1, w):
                    gain = gram[p, i] / gram[p, p]
                    for j in range(i, w):
                        gram[i, j] -= gain * gram[p, j]
            for i in range(w):
                for j in range(i, w):
                    if i >= k:
                        whole[i, j] += gram[i, j]
                    gram[i, j] = 0.0
        for i in range(w):
            for j in range(i):
                whole[i, j] = whole[j, i]
