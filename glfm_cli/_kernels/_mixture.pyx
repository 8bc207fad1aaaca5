"""Passes over the rows of a mixture of normals: which component each is of, and where it lies.

Row n has pseudo-observations y of the columns o that are seen in it, y = eta + noise; component h
says eta ~ N(mu_h, Sigma_h). With A = Sigma_h,oo + diag(noise_o) = L L':

    log p(y | h) = -(1/2) (|L^-1 (y - mu_o)|^2 + 2 log|L| + |o| log 2 pi)
    eta | y, h   = eta* + Sigma_h,:o A^-1 (y - y*),   (eta*, y*) drawn from the component

Functions work on the rows start .. end - 1 and draw no random numbers: they are handed to them.
"""

from libc.math cimport INFINITY, exp, log, sqrt


cdef double factor(
    Py_ssize_t n_seen, const Py_ssize_t* seen, const double[:, ::1] Sigma,
    const double[::1] noise, double[:, ::1] L,
) noexcept nogil:
    """Fill the lower triangle of L; return log|L|, infinite when A is not positive definite."""
    cdef Py_ssize_t i, j, k
    cdef double t, total = 0.0
    for j in range(n_seen):
        for i in range(j, n_seen):
            t = Sigma[seen[i], seen[j]]
            if i == j:
                t += noise[seen[i]]
            for k in range(j):
                t -= L[i, k] * L[j, k]
            if i == j:
                if not t > 0.0:
                    return INFINITY
                L[j, j] = sqrt(t)
                total += log(L[j, j])
            else:
                L[i, j] = t / L[j, j]
    return total


cdef void forward(Py_ssize_t n, const double[:, ::1] L, double[::1] b) noexcept nogil:
    """Replace b by L^-1 b."""
    cdef Py_ssize_t i, k
    cdef double t
    for i in range(n):
        t = b[i]
        for k in range(i):
            t -= L[i, k] * b[k]
        b[i] = t / L[i, i]


cdef void backward(Py_ssize_t n, const double[:, ::1] L, double[::1] b) noexcept nogil:
    """Replace b by L'^-1 b."""
    cdef Py_ssize_t i, k
    cdef double t
    for i in range(n - 1, -1, -1):
        t = b[i]
        for k in range(i + 1, n):
            t -= L[k, i] * b[k]
        b[i] = t / L[i, i]


cdef Py_ssize_t find_seen(
    Py_ssize_t n, const unsigned char[:, ::1] seen, Py_ssize_t[::1] at
) noexcept nogil:
    """Fill `at` with the columns that are seen in a row; return how many."""
    cdef Py_ssize_t i, count = 0
    for i in range(seen.shape[1]):
        if seen[n, i]:
            at[count] = i
            count += 1
    return count


def place_rows(
    Py_ssize_t start, Py_ssize_t end,
    const double[:, ::1] y,           # in (N, S)
    const unsigned char[:, ::1] seen, # in (N, S)
    const double[::1] log_pi,         # in (H,)
    const double[:, ::1] mu,          # in (H, S)
    const double[:, :, ::1] Sigma,    # in (H, S, S)
    const double[:, :, ::1] root,     # in (H, S, S), lower: Sigma = root root'
    const double[::1] noise,          # in (S,)
    const double[::1] u,              # in (N,) uniform
    const double[:, ::1] e_eta,       # in (N, S) normal
    const double[:, ::1] e_y,         # in (N, S) normal
    int[::1] z,                       # out (N,)
    double[:, ::1] eta,               # out (N, S)
    double[::1] log_p,                # scratch (H,)
    double[:, ::1] L,                 # scratch (S, S)
    double[::1] b,                    # scratch (S,)
    Py_ssize_t[::1] at,               # scratch (S,)
):
    """Draw the component of every row, eta integrated out, then eta. O(H |o|^3 / 3) a row.

    Returns the first row for which a covariance is not positive definite, or -1.
    """
    cdef Py_ssize_t n, h, i, j, n_seen, S = y.shape[1], H = mu.shape[0]
    cdef double log_det, top, t
    cdef Py_ssize_t bad = -1
    with nogil:
        for n in range(start, end):
            n_seen = find_seen(n, seen, at)
            top = -INFINITY
            for h in range(H):
                log_det = factor(n_seen, &at[0], Sigma[h], noise, L)
                if log_det == INFINITY:
                    bad = n
                    break
                for i in range(n_seen):
                    b[i] = y[n, at[i]] - mu[h, at[i]]
                forward(n_seen, L, b)
                t = 0.0
                for i in range(n_seen):
                    t += b[i] * b[i]
                log_p[h] = log_pi[h] - 0.5 * t - log_det
                if log_p[h] > top:
                    top = log_p[h]
            if bad >= 0:
                break
            t = 0.0
            for h in range(H):
                t += exp(log_p[h] - top)
            t *= u[n]
            z[n] = <int>(H - 1)
            for h in range(H):
                t -= exp(log_p[h] - top)
                if t < 0.0:
                    z[n] = <int>h
                    break
            h = z[n]
            for i in range(S):
                t = mu[h, i]
                for j in range(i + 1):
                    t += root[h, i, j] * e_eta[n, j]
                eta[n, i] = t
            factor(n_seen, &at[0], Sigma[h], noise, L)
            for i in range(n_seen):
                j = at[i]
                b[i] = y[n, j] - eta[n, j] - sqrt(noise[j]) * e_y[n, j]
            forward(n_seen, L, b)
            backward(n_seen, L, b)
            for i in range(S):
                t = 0.0
                for j in range(n_seen):
                    t += Sigma[h, i, at[j]] * b[j]
                eta[n, i] += t
    return bad


def fill_law(
    Py_ssize_t start, Py_ssize_t end,
    const unsigned char[:, ::1] seen, # in (N, S)
    const double[:, ::1] eta,         # in (N, S)
    const double[:, ::1] mu,          # in (H, S)
    const double[:, :, ::1] Sigma,    # in (H, S, S)
    const double[::1] nothing,        # in (S,) zeros
    const int[::1] z,                 # in (N,)
    const Py_ssize_t[::1] first,      # in (S,) the first column of the block that a column is of
    double[:, ::1] mean,              # out (N, S)
    double[:, :, ::1] cov,            # out (N, S, W): covariance with columns first[s], ..., s
    double[:, ::1] L,                 # scratch (S, S)
    double[:, ::1] B,                 # scratch (S, S)
    double[::1] b,                    # scratch (S,)
    Py_ssize_t[::1] at,               # scratch (S,)
):
    """Fill mean, and covariance inside blocks, of eta at unseen columns given z and seen eta.

    A block is seen as a whole or not at all. At seen columns the mean is eta itself, the covariance
    0. O(|o|^3 / 3 + (S - |o|) |o|^2) a row. Returns the first row for which a covariance is not
    positive definite, or -1.
    """
    cdef Py_ssize_t n, h, i, j, k, n_seen, S = eta.shape[1]
    cdef double t
    cdef Py_ssize_t bad = -1
    with nogil:
        for n in range(start, end):
            h = z[n]
            n_seen = find_seen(n, seen, at)
            for i in range(S):
                mean[n, i] = eta[n, i]
                for k in range(first[i], i + 1):
                    cov[n, i, k - first[i]] = 0.0
            if n_seen == S:
                continue
            if factor(n_seen, &at[0], Sigma[h], nothing, L) == INFINITY:
                bad = n
                break
            for i in range(S):
                if seen[n, i]:
                    continue
                for j in range(n_seen):
                    b[j] = Sigma[h, i, at[j]]
                forward(n_seen, L, b)
                for j in range(n_seen):
                    B[i, j] = b[j]
                for k in range(first[i], i + 1):
                    t = Sigma[h, i, k]
                    for j in range(n_seen):
                        t -= b[j] * B[k, j]
                    cov[n, i, k - first[i]] = t if k < i or t > 0.0 else 0.0
                backward(n_seen, L, b)
                t = mu[h, i]
                for j in range(n_seen):
                    t += b[j] * (eta[n, at[j]] - mu[h, at[j]])
                mean[n, i] = t
    return bad
