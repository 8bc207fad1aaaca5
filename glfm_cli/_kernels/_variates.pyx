"""Random variates that NumPy does not have: normals truncated to an interval.

Many at once are drawn as quantiles of uniform numbers, in vectors, where Phi tells the interval's
ends well apart; every other draw is by rejection, so that there is no special function to overflow
and no tail in which the draw loses digits. With a, b the ends in standard units, and 0 < a after a reflection:

    the interval holds 0, wide       normal, until it falls inside
    the interval holds 0, narrow     uniform, accepted with exp(-x^2 / 2)
    0 < a, narrow                    uniform, accepted with exp(-(x^2 - a^2) / 2)
    0 < a, otherwise                 a + exponential of rate (a + sqrt(a^2 + 4)) / 2  [Robert 1995]

At least 0.4 of the tries are accepted everywhere. `exp(-t) > U` is asked as `E > t` with E
standard exponential, which saves the exponential function.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, isnan, sqrt
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport (
    random_standard_exponential,
    random_standard_normal,
    random_standard_uniform,
)

import numpy as np

cdef extern from "_normal.h" nogil:
    void glfm_between(int n, const double* a, const double* b, const double* u, double* x) noexcept

cdef enum:
    TOGETHER = 256  # draws that are made together

# Below these widths (in standard units, times the tail's decay rate) a uniform proposal is best.
cdef double NARROW_CENTRE = 2.2
cdef double NARROW_TAIL = 1.2
# Beyond it (x - a)^2 is lost against 2 a (x - a): the tail is exponential to the last digit.
cdef double EXPONENTIAL_TAIL = 1e8


cdef bitgen_t* bitgen_of(object rng) except NULL:
    """Return the C random source of a `numpy.random.Generator`; the caller holds its lock."""
    return <bitgen_t*> PyCapsule_GetPointer(rng.bit_generator.capsule, "BitGenerator")


cdef inline double _upper_tail(bitgen_t* bitgen, double a, double b) noexcept nogil:
    """Draw a standard normal given a < x < b, with a >= 0."""
    cdef double rate, x, gap
    if a > EXPONENTIAL_TAIL:
        while True:
            x = a + random_standard_exponential(bitgen) / a
            if x <= b:
                return x
            if a * (b - a) < NARROW_TAIL:
                return a + (b - a) * random_standard_uniform(bitgen)
    rate = 0.5 * (a + sqrt(a * a + 4.0))
    if rate * (b - a) < NARROW_TAIL:
        while True:
            x = a + (b - a) * random_standard_uniform(bitgen)
            if random_standard_exponential(bitgen) >= 0.5 * (x - a) * (x + a):
                return x
    while True:
        x = a + random_standard_exponential(bitgen) / rate
        if x <= b:
            gap = x - rate
            if random_standard_exponential(bitgen) >= 0.5 * gap * gap:
                return x


cdef inline double _standard(bitgen_t* bitgen, double a, double b) noexcept nogil:
    """Draw a standard normal given a < x < b."""
    cdef double x
    if a >= 0.0:
        return _upper_tail(bitgen, a, b)
    if b <= 0.0:
        return -_upper_tail(bitgen, -b, -a)
    if b - a < NARROW_CENTRE:
        while True:
            x = a + (b - a) * random_standard_uniform(bitgen)
            if random_standard_exponential(bitgen) >= 0.5 * x * x:
                return x
    while True:
        x = random_standard_normal(bitgen)
        if a <= x <= b:
            return x


cdef inline double within(double y, double lower, double upper) noexcept nogil:
    """Return y, moved to an end that the rounding of mean + sd x stepped over."""
    if y < lower:
        return lower
    if y > upper:
        return upper
    return y


cdef double truncated_normal(
    bitgen_t* bitgen, double mean, double sd, double lower, double upper
) noexcept nogil:
    """Draw y ~ N(mean, sd^2) given lower < y < upper; an interval without width gives `lower`."""
    cdef double a = (lower - mean) / sd
    cdef double b = (upper - mean) / sd
    if not a < b:
        return lower if lower > -INFINITY else upper
    return within(mean + sd * _standard(bitgen, a, b), lower, upper)


cdef double placed(
    bitgen_t* bitgen, double x, double mean, double sd, double lower, double upper
) noexcept nogil:
    """Return mean + sd x of a standard draw, or a draw by rejection where x is NaN."""
    if isnan(x):
        return truncated_normal(bitgen, mean, sd, lower, upper)
    return within(mean + sd * x, lower, upper)


cdef void standard_truncated_normals(
    bitgen_t* bitgen, int n, double* a, double* b, double* u, double* x
) noexcept nogil:
    """Draw x_i, a standard normal given a_i < x_i < b_i, for most i < n; NaN for the others.

    Those are for `truncated_normal`: intervals that are far out, or narrow, or without width. All
    arrays have room up to the next multiple of 8; u is scratch.
    """
    cdef int i
    for i in range(n):
        u[i] = bitgen.next_double(bitgen.state)
    for i in range(n, (n + 7) // 8 * 8):
        a[i] = b[i] = u[i] = 0.0
    glfm_between((n + 7) // 8 * 8, a, b, u, x)


def fill_truncated_normal(
    const double[:] mean, double sd, const double[:] lower, const double[:] upper, rng, double[:] out
):
    """Draw out_n ~ N(mean_n, sd^2) given lower_n < out_n < upper_n; skip rows whose lower is NaN.

    O(n), about 10 ns a draw; the tails cost some 30 ns.

    Parameters
    ----------
    mean, lower, upper : (n,) float64, in
        Means and interval ends; -inf and inf are allowed ends, NaN in `lower` leaves the row alone.
    sd : float
        Standard deviation, > 0.
    rng : numpy.random.Generator
    out : (n,) float64, any stride
        Overwritten with the draws.
    """
    cdef Py_ssize_t n = 0, k, start
    cdef int m, i
    cdef double[TOGETHER] a, b, u, x
    cdef double inv = 1.0 / sd
    cdef bitgen_t* bitgen = bitgen_of(rng)
    with rng.bit_generator.lock, nogil:
        while n < out.shape[0]:
            start, m = n, 0
            while n < out.shape[0] and m < TOGETHER:
                if not isnan(lower[n]):
                    a[m] = (lower[n] - mean[n]) * inv
                    b[m] = (upper[n] - mean[n]) * inv
                    m += 1
                n += 1
            standard_truncated_normals(bitgen, m, a, b, u, x)
            i = 0
            for k in range(start, n):
                if not isnan(lower[k]):
                    out[k] = placed(bitgen, x[i], mean[k], sd, lower[k], upper[k])
                    i += 1


def quantiles_between(const double[::1] a, const double[::1] b, const double[::1] u):
    """Return the u-quantiles of standard normals between a and b, as `glfm_between`. For tests.

    Parameters
    ----------
    a, b, u : (n,) float64, in

    Returns
    -------
    (n,) float64
    """
    cdef Py_ssize_t n = a.shape[0]
    padding = np.zeros((8 - n % 8) % 8)
    cdef double[::1] low = np.concatenate([a, padding]), high = np.concatenate([b, padding])
    cdef double[::1] at = np.concatenate([u, padding]), out = np.empty(n + padding.size)
    if n > 0:
        glfm_between(<int> out.shape[0], &low[0], &high[0], &at[0], &out[0])
    return np.asarray(out)[:n]
