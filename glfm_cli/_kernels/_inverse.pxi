# The inverse of a small positive definite matrix.

cdef double invert(Py_ssize_t c, double* Q, double* L) noexcept nogil:
    """Replace Q (c, c), of which the lower triangle is read, by its inverse; return log|Q|.

    Infinite when Q is not positive definite. L (c, c) is scratch. O(c^3).
    """
    cdef Py_ssize_t i, j, k
    cdef double t, total = 0.0
    for j in range(c):  # Q = L L', row by row so that inner products run along rows
        for i in range(j + 1):
            t = Q[j * c + i]
            for k in range(i):
                t -= L[j * c + k] * L[i * c + k]
            if i < j:
                L[j * c + i] = t / L[i * c + i]
            elif t > 0.0:
                L[j * c + j] = sqrt(t)
                total += log(t)
            else:
                return INFINITY
    for j in range(c):  # L^-1, transposed into the upper triangle of Q: Q[j, i] = (L^-1)[i, j]
        Q[j * c + j] = 1.0 / L[j * c + j]
        for i in range(j + 1, c):
            t = 0.0
            for k in range(j, i):
                t -= L[i * c + k] * Q[j * c + k]
            Q[j * c + i] = t / L[i * c + i]
    for i in range(c):  # Q^-1 = (L^-1)' L^-1; entry (i, j) needs columns from max(i, j) on
        for j in range(i + 1):
            t = 0.0
            for k in range(i, c):
                t += Q[i * c + k] * Q[j * c + k]
            L[i * c + j] = t
    for i in range(c):
        for j in range(i + 1):
            Q[i * c + j] = Q[j * c + i] = L[i * c + j]
    return total
