"""Quantiles of averaged predictive distributions, tables of their moments, scores of rows."""

from libc.math cimport INFINITY, NAN, fabs, isfinite

cdef extern from "_vector.h" nogil:
    void glfm_add_rows(int n_rows, const int* rows, int n, const float* x, float* out) noexcept
    int glfm_pick(int n, double u, const float* w) noexcept

cdef extern from "_normal.h" nogil:
    void glfm_sum_steps(int n, const double* at, const double* first, const double* second,
                        double eta, double inv, double end, double* out) noexcept
    double glfm_mixture_cdf(int n, const double* mean, const double* sd, const double* weight,
                            double y, double* slope) noexcept

cdef double invert(const double* mean, const double* sd, const double* weight, int T,
                   double p, double lower, double upper, double start) noexcept nogil:
    """Return y with mixture cdf p in [lower, upper]: Newton's step, kept inside a bracket."""
    cdef double low = lower, high = upper, y = start, f, density, step
    cdef int i
    if not (low < y < high):
        y = 0.5 * (low + high)
    for i in range(200):
        f = glfm_mixture_cdf(T, mean, sd, weight, y, &density) - p
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
    const double[:, ::1] p,       # in (n, Q), each in (0, 1), or NaN, whose quantile is NaN
    double lower, double upper,   # the mixture is truncated to [lower, upper]
    double[:, ::1] out,           # out (n, Q)
):
    """Quantiles of n mixtures of T normals, truncated. O(n Q T), about eight passes each."""
    cdef Py_ssize_t n, t, j
    cdef int T = <int> mean.shape[1]
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
                below = glfm_mixture_cdf(T, &mean[n, 0], &sd[n, 0], &weight[n, 0], lower, &density)
                low = max(low, lower)
            if isfinite(upper):
                above = glfm_mixture_cdf(T, &mean[n, 0], &sd[n, 0], &weight[n, 0], upper, &density)
                high = min(high, upper)
            for j in range(p.shape[1]):
                target = below + p[n, j] * (above - below)
                if target != target:
                    out[n, j] = NAN
                elif not low < high or not below < above:
                    # no mass between the bounds: the bound nearest to the mixture
                    out[n, j] = min(max(centre, lower), upper)
                else:
                    out[n, j] = invert(&mean[n, 0], &sd[n, 0], &weight[n, 0], T, target,
                                       low, high, centre)


cdef inline int weigh(double at, int order, int n, double* w) noexcept nogil:
    """Fill the weights of `order` nodes around a place on a grid 0..n-1; return the first node.

    The polynomial through them [Lagrange]; n is at least `order`.
    """
    cdef int first = <int> at - order // 2 + 1, i, j
    cdef double t
    first = min(max(first, 0), n - order)
    t = at - first
    for i in range(order):
        w[i] = 1.0
        for j in range(order):
            if j != i:
                w[i] *= (t - j) / (i - j)
    return first


def sum_steps(
    const double[::1] at,          # in (M,)
    const double[:, ::1] weights,  # in (2, M)
    const double[::1] eta,         # in (n,)
    const double[::1] sd,          # in (n,) > 0
    double end,                    # inf for none
    double[:, ::1] out,            # out (n, 2)
):
    """Sum the weights times P(at_m <= y < end) over m, y ~ N(eta_n, sd_n^2). O(n M)."""
    cdef Py_ssize_t n
    cdef int M = <int> at.shape[0]
    with nogil:
        for n in range(eta.shape[0]):
            glfm_sum_steps(M, &at[0], &weights[0, 0], &weights[1, 0], eta[n], 1.0 / sd[n], end,
                           &out[n, 0])


def interpolate(
    const double[:, :, ::1] table,  # in (X, Y, 2), X >= 6, Y = 1 or >= 4
    const double[::1] x,            # in (n,) places on the grid, from 0 to X - 1
    const double[::1] y,            # in (n,) the same, from 0 to Y - 1
    double[:, ::1] out,             # out (n, 2)
):
    """Interpolate a table of pairs by polynomials, of degree 5 along x and 3 along y. O(n)."""
    cdef Py_ssize_t n
    cdef int i, j, first, second, X = <int> table.shape[0], Y = <int> table.shape[1]
    cdef int order = min(Y, 4)
    cdef double[6] u
    cdef double[4] v
    cdef double a, b
    cdef const double* row
    with nogil:
        for n in range(x.shape[0]):
            first, second = weigh(x[n], 6, X, u), weigh(y[n], order, Y, v)
            out[n, 0] = out[n, 1] = 0.0
            for i in range(6):
                a = b = 0.0
                row = &table[first + i, second, 0]
                for j in range(order):
                    a += v[j] * row[2 * j]
                    b += v[j] * row[2 * j + 1]
                out[n, 0] += u[i] * a
                out[n, 1] += u[i] * b


def add_table_rows(
    const int[:, ::1] which,       # in (n, D) rows of the table
    const float[:, ::1] table,     # in (V, C)
    float[:, ::1] out,             # in-out (n, C)
):
    """Add to each row of `out` the rows of a table that it names. O(n D C)."""
    cdef Py_ssize_t n
    cdef int D = <int> which.shape[1], C = <int> table.shape[1]
    if D == 0 or C == 0:
        return
    with nogil:
        for n in range(which.shape[0]):
            glfm_add_rows(D, &which[n, 0], C, &table[0, 0], &out[n, 0])


def pick_columns(
    const float[:, ::1] weight,    # in (n, C), >= 0
    const double[::1] u,           # in (n,), each in [0, 1)
    Py_ssize_t[::1] out,           # out (n,)
):
    """Fill which column each row picks, with probabilities as the weights. O(n C)."""
    cdef Py_ssize_t n
    cdef int C = <int> weight.shape[1]
    with nogil:
        for n in range(weight.shape[0]):
            out[n] = glfm_pick(C, u[n], &weight[n, 0])
