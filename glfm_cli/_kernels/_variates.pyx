"""Random variates that NumPy does not have: normals truncated to an interval.

Every draw is by rejection, so there is no special function to overflow and no tail in which
the draw loses digits. With a, b the ends in standard units, and 0 < a after a reflection:

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


cdef double truncated_normal(
    bitgen_t* bitgen, double mean, double sd, double lower, double upper
) noexcept nogil:
    """Draw y ~ N(mean, sd^2) given lower < y < upper; an interval without width gives `lower`."""
    cdef double a = (lower - mean) / sd
    cdef double b = (upper - mean) / sd
    cdef double y
    if not a < b:
        return lower if lower > -INFINITY else upper
    y = mean + sd * _standard(bitgen, a, b)
    # Rounding of mean + sd * x may step over an end.
    if y < lower:
        return lower
    if y > upper:
        return upper
    return y


def fill_truncated_normal(
    const double[:] mean, double sd, const double[:] lower, const double[:] upper, rng, double[:] out
):
    """Draw out_n ~ N(mean_n, sd^2) given lower_n < out_n < upper_n; skip rows whose lower is NaN.

    O(n), about 30 ns a draw; the tails cost no more than the centre.

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
    cdef Py_ssize_t n
    cdef bitgen_t* bitgen = bitgen_of(rng)
    with rng.bit_generator.lock, nogil:
        for n in range(out.shape[0]):
            if not isnan(lower[n]):
                out[n] = truncated_normal(bitgen, mean[n], sd, lower[n], upper[n])
