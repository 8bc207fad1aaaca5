"""Row update and weight draw of the latent feature model, with the weights integrated out.

The state is that of models where  y_ns = z_n b_s + noise  in units of the noise standard
deviation:  ytil = y / sd.  Letters (sources: [GLFM] section 4 and appendix A, corrected as the
docstrings of glfm_cli.latent.glfm.sampler say):

    Z (N, C)      binary features, compact columns 0..K-1; column 0 is the bias when there is one
    A (G, C, C)   P^-1,  P = Z'Z + diag(prior precision), one per group of pseudo-columns
    M (C, S)      P^-1 Z' ytil, the weights' conditional mean
    L (C, S)      Z' ytil
    ZZ (C, C)     Z'Z; its diagonal holds the feature counts m_k
    tau (G,)      prior variance of a weight in noise units; bias_var (G,) the same for the bias

C is the capacity (feature cap + bias), K <= C the columns in use. A group is a set of
pseudo-columns with one prior scale: a single group under the noise-scaled prior. Segments are
runs of pseudo-columns of one group, (start, end, group).

Cost of `sweep`: O(N (K^2 G + K S)) time; no memory beyond the work array.
"""

from libc.math cimport INFINITY, exp, lgamma, log, sqrt
from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from cpython.pycapsule cimport PyCapsule_GetPointer
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport (
    random_standard_gamma,
    random_standard_normal,
    random_standard_uniform,
)
from scipy.linalg.cython_blas cimport dgemm, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotri

import numpy as np

cdef extern from "_vector.h" nogil:
    void glfm_axpy(int n, double a, const double* x, double* y) noexcept
    void glfm_sum_rows(int n_rows, const int* rows, int n, const double* x, int ld,
                       double* out) noexcept
    void glfm_sum_in_order(int n_rows, const int* rows, int n, const double* x, int ld,
                           double* out) noexcept
    void glfm_add_to_rows(int n_rows, const int* rows, int n, double a, const double* x, int ld,
                          double* y) noexcept
    void glfm_add_dots(int n_rows, const int* rows, int n, const double* x, int ld,
                       const double* r, double* xr) noexcept
    void glfm_rank_one_dots(int n_rows, int n, double a, const double* v, const double* x,
                            const double* w, const double* r, int ld, double* y, double* yr,
                            double* yy) noexcept
    void glfm_bound_flips(int n, const double* z, const double* v, const double* diagonal,
                          const double* dots, const double* squares, double q, double R2,
                          double n_seen, double scaled, double variance, double* gain) noexcept
    void glfm_masked_axpy(int n, double a, const double* w, const double* x, double* y) noexcept
    void glfm_multiply(int n, const double* x, const double* y, double* out) noexcept
    void glfm_subtract(int n, const double* x, const double* y, double* out) noexcept
    void glfm_scale(int n, double a, double* x) noexcept
    double glfm_dot(int n, const double* x, const double* y) noexcept
    int GLFM_LANES
    void glfm_rank_one(int n_rows, int n, double a, const double* v, const double* x,
                       int ld, double* y) noexcept

cdef extern from "_normal.h" nogil:
    void glfm_log_odds(int n, double* u) noexcept

cdef enum:
    MAX_NEW = 30  # largest number of new features of one row
    AHEAD = 16  # flips whose bounds are computed together after another bit was flipped
    REBUILD_EVERY = 1000  # rows between exact recomputations of A and M

cdef double MARGIN = 1e-9  # of a bound: more than all rounding errors together
cdef double SINGULAR = 1e-6  # below this 1 - z A z' the downdate would lose its digits

include "_glfm_model.pxi"
include "_glfm_row.pxi"
include "_glfm_weights.pxi"


cdef void attach(
    Model* m, double[:, ::1] y, const uint8_t[:, ::1] observed, const int[::1] column,
    const int[:, ::1] segments, const double[::1] sd, const double[::1] tau,
    const double[::1] bias_var, uint8_t[:, ::1] Z, int n_columns, int bias, double alpha,
    double[::1] work, int[::1] iwork, bint fresh,
) noexcept:
    """Point to the arrays; `fresh` for a work space without meaning yet, else it is kept."""
    cdef int s
    m.N = <int> y.shape[0]
    m.S = <int> y.shape[1]
    m.D = <int> observed.shape[1]
    m.G = <int> tau.shape[0]
    m.C = <int> Z.shape[1]
    m.K = n_columns
    m.bias = bias
    m.max_features = m.C - bias
    m.n_segments = <int> segments.shape[0]
    m.alpha = alpha
    m.y = &y[0, 0]
    m.observed = &observed[0, 0]
    m.column = &column[0]
    m.segments = &segments[0, 0]
    m.sd = &sd[0]
    m.tau = &tau[0]
    m.bias_var = &bias_var[0]
    m.Z = &Z[0, 0]
    m.script = NULL
    m.bitgen = NULL
    partition(m, &work[0], &iwork[0])
    if fresh:
        memset(&work[0], 0, <size_t> (m.prior - &work[0]) * sizeof(double))
    for s in range(m.S):
        m.inv_sd[s] = 1.0 / sd[s]
    if not fresh:
        return
    for s in range(1, m.N):
        m.prior[s] = log(<double> s / (m.N - s))
    if alpha > 0.0:
        for s in range(MAX_NEW + 1):
            m.new_prior[s] = s * log(alpha / m.N) - lgamma(s + 1.0)


def sweep(
    double[:, ::1] y,               # in-out (N, S), missing cells redrawn
    const uint8_t[:, ::1] observed, # in (N, D)
    const int[::1] column,          # in (S,) column that owns a pseudo-column
    const int[:, ::1] segments,     # in (n, 3)
    const double[::1] sd,           # in (S,) noise standard deviations
    const double[::1] tau,          # in (G,)
    const double[::1] bias_var,     # in (G,)
    uint8_t[:, ::1] Z,              # in-out (N, C)
    int n_columns, int bias, double alpha,
    double[::1] work, int[::1] iwork,  # out; A, M, L, ZZ are left for `draw_weights`
    rng,
):
    """Update every row once. Return (columns in use, status); status 0 is success."""
    cdef Model m
    cdef int n, status = 0
    attach(&m, y, observed, column, segments, sd, tau, bias_var, Z, n_columns, bias, alpha,
           work, iwork, True)
    bit_generator = rng.bit_generator
    m.bitgen = <bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
    with bit_generator.lock, nogil:
        accumulate(&m)
        status = rebuild(&m)
        for n in range(m.N):
            if status != 0:
                break
            if n % REBUILD_EVERY == REBUILD_EVERY - 1:
                status = rebuild(&m)
                if status != 0:
                    break
            status = update_row(&m, n)
        if status == 0:
            status = rebuild(&m)
    return m.K, status


def draw_weights(
    double[:, ::1] y,               # in-out (N, S), unit-noise columns rescaled
    const uint8_t[:, ::1] observed, const int[::1] column,
    const int[:, ::1] segments, const double[::1] sd, const double[::1] tau,
    const double[::1] bias_var, uint8_t[:, ::1] Z, int n_columns, int bias,
    double[::1] work, int[::1] iwork,  # in: as `sweep` left them
    const uint8_t[::1] unit_noise,  # in (D,)
    const double[:, ::1] scale_group,  # in (D, 2)
    double[::1] factor,             # out (D,)
    double noise_shape, double noise_rate, int noise_scaled,
    double[::1] noise,              # in-out (D,) variances; those of unit columns stay
    double[:, ::1] B,               # out (C, S), rows past n_columns untouched
    rng,
):
    """Draw scales, noise variances and weights after a sweep. Return 0, or a LAPACK status.

    With the noise-scaled prior the variances are drawn with the weights integrated out, then
    the weights given them; otherwise weights first, then variances given the weights.
    """
    cdef Model m
    cdef int status, s
    cdef double* scale
    attach(&m, y, observed, column, segments, sd, tau, bias_var, Z, n_columns, bias, 0.0,
           work, iwork, False)
    bit_generator = rng.bit_generator
    m.bitgen = <bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")
    with bit_generator.lock, nogil:
        scale = m.r
        rescale_unit_columns(&m, &unit_noise[0], &scale_group[0, 0], &factor[0])
        if noise_scaled:
            draw_noise(&m, &unit_noise[0], noise_shape, noise_rate, &noise[0])
            for s in range(m.S):
                scale[s] = sqrt(noise[m.column[s]])
        else:
            for s in range(m.S):
                scale[s] = m.sd[s]
        status = draw_matrix(&m, scale, &B[0, 0])
        if not noise_scaled and status == 0:
            draw_noise_given_weights(&m, &unit_noise[0], &B[0, 0], noise_shape, noise_rate,
                                     &noise[0])
    return status


def permutation(int n, rng):
    """Return a uniformly random permutation of 0..n-1, made as for a row. For tests."""
    order = np.arange(n, dtype=np.int32)
    cdef int[::1] view = order
    bit_generator = rng.bit_generator
    if n > 0:
        shuffle(<bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator"), n,
                &view[0])
    return order


def log_odds(double[::1] u):
    """Let u become log(u / (1 - u)), of whole vectors. For tests."""
    glfm_log_odds(<int> u.shape[0], &u[0])


def fill_eta(
    const uint8_t[:, ::1] Z,        # in (N, C)
    const double[:, ::1] B,         # in (C, S)
    int n_columns,
    double[:, ::1] out,             # out (N, S)
):
    """Compute eta = Z B. O(N (K + S mean active features))."""
    cdef Py_ssize_t n
    cdef int k, n_active, S = <int> out.shape[1]
    cdef int[::1] active = np.empty(n_columns + 1, dtype=np.int32)
    if S == 0:
        return
    with nogil:
        for n in range(out.shape[0]):
            n_active = 0
            for k in range(n_columns):
                active[n_active] = k
                n_active += Z[n, k]
            glfm_sum_in_order(n_active, &active[0], S, &B[0, 0], S, &out[n, 0])


def scripted_row(
    double[:, ::1] y, const uint8_t[:, ::1] observed, const int[::1] column,
    const int[:, ::1] segments, const double[::1] sd, const double[::1] tau,
    const double[::1] bias_var, uint8_t[:, ::1] Z, int n_columns, int bias, double alpha,
    double[::1] work, int[::1] iwork, int n, const int[::1] choices, int width,
):
    """Run the production update of row n with its random decisions taken from `choices`.

    For tests of exactness. Missing pseudo-observations keep their values. Past the end of
    `choices` option 0 is taken. Return (columns in use, status, decisions), a decision being
    (option taken, probabilities of all options).
    """
    cdef Model m
    cdef Script script
    cdef int status
    cdef int capacity = 4 * (<int> Z.shape[1]) + 8
    made = np.zeros(capacity, dtype=np.int32)
    probabilities = np.full((capacity, width), -1.0)
    cdef int[::1] made_view = made
    cdef double[:, ::1] probabilities_view = probabilities
    attach(&m, y, observed, column, segments, sd, tau, bias_var, Z, n_columns, bias, alpha,
           work, iwork, True)
    script.choices = &choices[0] if choices.shape[0] > 0 else NULL
    script.n_choices = <int> choices.shape[0]
    script.n_made = 0
    script.capacity = capacity
    script.width = width
    script.made = &made_view[0]
    script.probabilities = &probabilities_view[0, 0]
    m.script = &script
    accumulate(&m)
    status = rebuild(&m)
    if status == 0:
        status = update_row(&m, n)
    decisions = [
        (int(made[i]), [float(p) for p in probabilities[i] if p >= 0.0])
        for i in range(script.n_made)
    ]
    return m.K, status, decisions
