# Phi, fast: a table and Taylor's series. Part of the kernels that include it, which cimport
# exp and ndtr.

cdef double INV_SQRT_2PI = 0.3989422804014327
cdef double LOG_SQRT_2PI = 0.9189385332046727

# Phi and phi at the knots -EDGE + k / PER_UNIT; between knots, Taylor's series of Phi.
cdef double EDGE = 8.5
cdef double PER_UNIT = 64.0
cdef int N_KNOTS = 1089
cdef double KNOT_CDF[1089]
cdef double KNOT_PDF[1089]


def _fill_knots():
    cdef int k
    cdef double x
    for k in range(N_KNOTS):
        x = k / PER_UNIT - EDGE
        KNOT_CDF[k] = ndtr(x)
        KNOT_PDF[k] = INV_SQRT_2PI * exp(-0.5 * x * x)


_fill_knots()


cdef inline double fast_ndtr(double x, double* pdf) noexcept nogil:
    """Return Phi(x) and set pdf to phi(x), relative error below 1e-9 for x > -8.5.

    Six terms of the series about the nearest knot, at most 1/128 away. phi comes from the same
    expansion, so that a ratio of the two needs no exponential.
    """
    cdef double x0, d, u, z2, series
    cdef int k
    if x >= EDGE:
        pdf[0] = 0.0
        return 1.0
    if not x > -EDGE:  # or no number
        pdf[0] = INV_SQRT_2PI * exp(-0.5 * x * x)
        return ndtr(x)
    k = <int>((x + EDGE) * PER_UNIT + 0.5)
    x0 = k / PER_UNIT - EDGE
    d = x - x0
    z2 = x0 * x0
    series = 1.0 + d * (-0.5 * x0 + d * ((z2 - 1.0) / 6.0 + d * (
        -x0 * (z2 - 3.0) / 24.0 + d * ((z2 * (z2 - 6.0) + 3.0) / 120.0
                                       - d * x0 * (z2 * (z2 - 10.0) + 15.0) / 720.0))))
    u = -d * (x0 + 0.5 * d)
    pdf[0] = KNOT_PDF[k] * (1.0 + u * (1.0 + u * (0.5 + u * (1.0 / 6.0 + u * (
        1.0 / 24.0 + u * (1.0 / 120.0 + u / 720.0))))))
    return KNOT_CDF[k] + KNOT_PDF[k] * d * series
