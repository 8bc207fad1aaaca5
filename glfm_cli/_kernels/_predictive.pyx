"""Quantiles of averaged predictive distributions."""

from libc.math cimport INFINITY, NAN, exp, fabs, isfinite

from scipy.special.cython_special cimport ndtr

cdef double INV_SQRT_2PI = 0.3989422804014327


cdef double mixture_cdf(const double* mean, const double* sd, const double* weight, Py_ssize_t T,
                        double y, double* density) noexcept nogil:
    """Return sum_t w_t Phi((y - mean_t)/sd_t); density gets its derivative."""
    cdef double total = 0.0, slope = 0.0, u
    cdef Py_ssize_t t
    for t in range(T):
        u = (y - mean[t]) / sd[t]
        if u < 8.5:
            if u > -8.5:
                total += weight[t] * ndtr(u)
                slope += weight[t] * exp(-0.5 * u * u) / sd[t]
        else:
            total += weight[t]
    density[0] = slope * INV_SQRT_2PI
    return total


cdef double invert(const double* mean, const double* sd, const double* weight, Py_ssize_t T,
                   double p, double lower, double upper, double start) noexcept nogil:
    """Return y with mixture cdf p in [lower, upper]: Newton's step, kept inside a bracket."""
    cdef double low = lower, high = upper, y = start, f, density, step
    cdef int i
    if not (low < y < high):
        y = 0.5 * (low + high)
    for i in range(200):
        f = mixture_cdf(mean, sd, weight, T, y, &density) - p
        if f > 0.0:
            high = y
        else:
            low = y
        step = y - f / density if density > 0.0 else NAN
        if not (low < step < high):
            step = 0.5 * (low + high)
        if fabs(step - y) < 1e-10 * (1.0 + fabs(y)):
            return step
        y = step
    return y


def mixture_quantiles(
    const double[:, ::1] mean,    # in (n, T)
    const double[:, ::1] sd,      # in (n, T), > 0
    const double[:, ::1] weight,  # in (n, T), rows sum to 1
    const double[:, ::1] p,       # in (n, Q), each in (0, 1)
    double lower, double upper,   # the mixture is truncated to [lower, upper]
    double[:, ::1] out,           # out (n, Q)
):
    """Quantiles of n mixtures of T normals, truncated. O(n Q T), about eight passes each."""
    cdef Py_ssize_t n, t, j, T = mean.shape[1]
    cdef double low, high, centre, below, above, density, target
    with nogil:
        for n in range(mean.shape[0]):
            low = INFINITY
            high = -INFINITY
            centre = 0.0
            for t in range(T):
                low = min(low, mean[n, t] - 9.0 * sd[n, t])
                high = max(high, mean[n, t] + 9.0 * sd[n, t])
                centre += weight[n, t] * mean[n, t]
            below = 0.0
            above = 1.0
            if isfinite(lower):
                below = mixture_cdf(&mean[n, 0], &sd[n, 0], &weight[n, 0], T, lower, &density)
                low = max(low, lower)
            if isfinite(upper):
                above = mixture_cdf(&mean[n, 0], &sd[n, 0], &weight[n, 0], T, upper, &density)
                high = min(high, upper)
            for j in range(p.shape[1]):
                target = below + p[n, j] * (above - below)
                if not low < high or not below < above:
                    # no mass between the bounds: the bound nearest to the mixture
                    out[n, j] = min(max(centre, lower), upper)
                else:
                    out[n, j] = invert(&mean[n, 0], &sd[n, 0], &weight[n, 0], T, target,
                                       low, high, centre)
