# One row's q(v): moments of lt_k . v and of the rates, and a step of its mean and covariance.
#
# Letters are those of `_cnpf`; arrays over components have length K.

cdef extern from "_gamma.h" nogil:
    int GLFM_PAD
    void glfm_log_means(int n, const double* a, const double* b, double* out)
    double glfm_relative_exp(int n, const double* x, double* out)
    double glfm_split_counts(
        int64_t cells, const int* column, const int* y, int K, const double* x, const double* a,
        int wanted, double* ratio, double* out)
    void glfm_leave_out(
        int64_t cells, const int* column, const int* y, int K, int T, const double* x,
        const double* n, const double* w, const double* a, const double* A, double least,
        int16_t* top, float* own, int16_t* was, float* change, double* ratio, double* out)
    void glfm_gather_counts(
        int64_t cells, const int* row, const int* cell, int K, const double* ratio,
        const double* x, double* out)
    void glfm_combine_rows(int J, int K, const double* c, const double* M, double* out)
    void glfm_dot_rows(int J, int K, const double* M, const double* q, double* out)
    void glfm_exp_moments(
        int K, const double* mean, const double* var, double* log_r, double* rho)
    void glfm_softplus_moments(
        int K, int Q, const double* node, const double* weight, const double* mean,
        const double* var, double* log_r, double* rho)
    void glfm_softplus_partials(
        int K, int Q, const double* node, const double* weight, const double* mean,
        const double* var, double* log_m, double* log_v, double* rho_m, double* rho_v)
    double glfm_rate_objective(
        int K, const double* w, const double* n, const double* log_r, const double* rho,
        const double* S)
    double glfm_log_gamma_rise(int K, const double* w, const double* n)
    void glfm_add_rises(
        int K, const double* w, const double* n, double* f, double* first, double* second)
    void glfm_add_rates(
        int K, const double* w, const double* n, const double* rho, const double* S,
        double* log_sum, double* mean_sum)
    void glfm_add_gradient(
        int D, int K, const double* p, const double* q, const double* m, const double* SL,
        double* gradient)
    void glfm_add_outer(
        int D, int K, const double* c, const double* E, const double* cov, double* H)


cdef enum:
    TRIES = 7  # of a damped step
cdef double LONGEST = 3.0  # step of a mean of v
cdef double ROUNDING = 1e-13  # relative fall of an objective that is no fall


cdef struct Link:
    int Q                   # nodes of the quadrature; 0: the exp link
    const double* node
    const double* weight


cdef struct Sizes:
    int K, F, J, diagonal


cdef inline void moments(
    const Link* link, int K, const double* mean, const double* var, double* log_r, double* rho
) noexcept nogil:
    if link.Q:
        glfm_softplus_moments(K, link.Q, link.node, link.weight, mean, var, log_r, rho)
    else:
        glfm_exp_moments(K, mean, var, log_r, rho)


cdef void project(
    const Sizes* size, const double* m, const double* cov, const double* loadings,
    const double* products, double* pairs, double* mean, double* var,
) noexcept nogil:
    """Fill mean and variance (K,) of lt_k . v; `pairs` (J,) is scratch. O(K J)."""
    cdef int i, j, p = 0
    for i in range(size.F):
        for j in range(i + 1):
            if size.diagonal:
                pairs[p] = cov[i] if i == j else 0.0
            else:
                pairs[p] = cov[p] if i == j else 2.0 * cov[p]
            p += 1
    glfm_combine_rows(size.F, size.K, m, loadings, mean)
    glfm_combine_rows(size.J, size.K, pairs, products, var)


cdef double log_det(const Sizes* size, const double* cov, double* L) noexcept nogil:
    """Return log|cov|, -infinite where it is not positive definite; L (F, F) is scratch."""
    cdef int i, j, k, p = 0, F = size.F
    cdef double t, total = 0.0
    for i in range(F):
        if size.diagonal:
            if not cov[i] > 0.0:
                return -INFINITY
            total += log(cov[i])
            continue
        for j in range(i + 1):
            t = cov[p]
            p += 1
            for k in range(j):
                t -= L[i * F + k] * L[j * F + k]
            if i > j:
                L[i * F + j] = t / L[j * F + j]
            elif t > 0.0:
                L[i * F + i] = sqrt(t)
                total += log(t)
            else:
                return -INFINITY
    return total


cdef double gaussian_terms(
    const Sizes* size, const double* prior, const double* m, const double* cov, double* L
) noexcept nogil:
    """Return -(m'Pm + tr(P cov) - log|cov|) / 2."""
    cdef int i
    cdef double total = log_det(size, cov, L)
    for i in range(size.F):
        total -= prior[i] * (m[i] * m[i] + cov[i if size.diagonal else i * (i + 3) // 2])
    return 0.5 * total


cdef bint solve(int F, const double* Q, double* L, const double* b, double* x) noexcept nogil:
    """Fill x = Q^-1 b; False where Q is not positive definite. L (F, F) is scratch."""
    cdef int i, j, k
    cdef double t
    for i in range(F):
        for j in range(i + 1):
            t = Q[i * F + j]
            for k in range(j):
                t -= L[i * F + k] * L[j * F + k]
            if i > j:
                L[i * F + j] = t * L[j * F + j]
            elif t > 0.0:
                L[i * F + i] = 1.0 / sqrt(t)  # the diagonal holds inverses
            else:
                return False
        t = b[i]
        for k in range(i):
            t -= L[i * F + k] * x[k]
        x[i] = t * L[i * F + i]
    for i in range(F - 1, -1, -1):
        t = x[i]
        for k in range(i + 1, F):
            t -= L[k * F + i] * x[k]
        x[i] = t * L[i * F + i]
    return True


cdef void unpack_pairs(int F, const double* pairs, const double* prior, double* Q) noexcept nogil:
    """Fill the lower triangle of Q (F, F) with pairs (J,) and add the prior's diagonal."""
    cdef int i, j, p = 0
    for i in range(F):
        for j in range(i + 1):
            Q[i * F + j] = pairs[p]
            p += 1
        Q[i * F + i] += prior[i]


cdef void fill_slopes(
    const Sizes* size, const Link* link, const double* w, const double* n, const double* S,
    const double* prior, const double* loadings, const double* products, const double* m,
    const double* mean, const double* var, const double* rho,
    double* gradient, double* bends, double* spreads, double* work,
) noexcept nogil:
    """Fill derivatives of the objective of `step_gaussian`; work has 7 K.

    gradient : (F,) by m
    spreads : (J,) sum_k c lt_k lt_k', c minus twice the slope by the variance: minus twice the
        gradient by cov, without P and cov^-1
    bends : (J,) minus the second derivatives by m, without P (exp link), else as `spreads` with the
        c that are below 0 left out
    """
    cdef int i, k, K = size.K
    cdef double q, b
    cdef double* slope = work
    cdef double* spread = slope + K
    cdef double* bend = spread + K
    cdef double* scratch = bend + K             # 4 K
    if link.Q:
        glfm_softplus_partials(
            K, link.Q, link.node, link.weight, mean, var,
            scratch, scratch + K, scratch + 2 * K, scratch + 3 * K)
        for k in range(K):
            b = (w[k] + n[k]) / (rho[k] + S[k])
            slope[k] = w[k] * scratch[k] - b * scratch[2 * K + k]
            q = -2.0 * (w[k] * scratch[K + k] - b * scratch[3 * K + k])
            spread[k] = q
            bend[k] = q if q > 0.0 else 0.0
    else:
        for k in range(K):
            b = rho[k] / (rho[k] + S[k])
            spread[k] = (w[k] + n[k]) * b
            slope[k] = spread[k] - w[k]
            bend[k] = spread[k] * (1.0 - b)
    glfm_dot_rows(size.F, K, loadings, slope, gradient)
    for i in range(size.F):
        gradient[i] -= prior[i] * m[i]
    glfm_dot_rows(size.J, K, products, bend, bends)
    glfm_dot_rows(size.J, K, products, spread, spreads)


cdef bint step_gaussian(
    const Sizes* size, const Link* link, const double* w, const double* n, const double* S,
    const double* prior, const double* loadings, const double* products,
    double* m, double* cov, double* mean, double* var, double* log_r, double* rho, double* work,
) noexcept nogil:
    """Move q(v) of a row by one damped Newton and fixed-point step; renew its moments.

        sum_k [w E log r - (w+n) log(rho + S)] - m'Pm/2 - tr(P cov)/2 + log|cov|/2    never falls
        m += lam H^-1 gradient,   cov += lam ((P + sum_k spread lt_k lt_k')^-1 - cov)

    False where no step raised it: nothing is changed then. O(K J) and O(F^3).
    """
    cdef int i, j, p, attempt, K = size.K, F = size.F, J = size.J
    cdef double old, new, lam, longest = 0.0, t
    cdef double* new_mean = work
    cdef double* new_var = new_mean + K
    cdef double* new_log = new_var + K
    cdef double* new_rho = new_log + K
    cdef double* scratch = new_rho + K          # 7 K
    cdef double* pairs = scratch + 7 * K        # J
    cdef double* bends = pairs + J              # J
    cdef double* goal = bends + J               # J
    cdef double* try_cov = goal + J             # J
    cdef double* gradient = try_cov + J         # F
    cdef double* step = gradient + F            # F
    cdef double* try_m = step + F               # F
    cdef double* H = try_m + F                  # F F
    cdef double* L = H + F * F                  # F F
    old = glfm_rate_objective(K, w, n, log_r, rho, S) + gaussian_terms(size, prior, m, cov, L)
    fill_slopes(size, link, w, n, S, prior, loadings, products, m, mean, var, rho,
                gradient, bends, pairs, scratch)

    unpack_pairs(F, bends, prior, H)
    if not solve(F, H, L, gradient, step):
        return False
    for i in range(F):
        longest = max(longest, fabs(step[i]))

    # Of the softplus link a spread can be below 0: where that leaves no precision, its bends will.
    if size.diagonal:
        for i in range(F):
            p = i * (i + 3) // 2
            t = prior[i] + pairs[p]
            goal[i] = 1.0 / (t if t > 0.0 else prior[i] + bends[p])
    else:
        unpack_pairs(F, pairs, prior, H)
        if invert(F, H, L) == INFINITY:
            unpack_pairs(F, bends, prior, H)
            if invert(F, H, L) == INFINITY:
                return False
        p = 0
        for i in range(F):
            for j in range(i + 1):
                goal[p] = H[i * F + j]
                p += 1

    lam = 1.0 if longest <= LONGEST else LONGEST / longest
    for attempt in range(TRIES):
        for i in range(F):
            try_m[i] = m[i] + lam * step[i]
        for p in range(F if size.diagonal else J):
            try_cov[p] = cov[p] + lam * (goal[p] - cov[p])
        project(size, try_m, try_cov, loadings, products, pairs, new_mean, new_var)
        moments(link, K, new_mean, new_var, new_log, new_rho)
        new = glfm_rate_objective(K, w, n, new_log, new_rho, S)
        new += gaussian_terms(size, prior, try_m, try_cov, L)
        if new >= old - ROUNDING * fabs(old):
            memcpy(m, try_m, F * sizeof(double))
            memcpy(cov, try_cov, (F if size.diagonal else J) * sizeof(double))
            memcpy(mean, new_mean, K * sizeof(double))
            memcpy(var, new_var, K * sizeof(double))
            memcpy(log_r, new_log, K * sizeof(double))
            memcpy(rho, new_rho, K * sizeof(double))
            return True
        lam /= 3.0
    return False


cdef double total_exposure(
    int K, double total, double g, const double* w, const double* n, const double* rho
) noexcept nogil:
    """Return the g with sum_k (w + n) g / (rho + g) = total: the row's words in a topic model.

    The left side rises in g from 0 to sum (w + n) > total: Newton in log g, in a bracket.
    """
    cdef double low = -60.0, high = 60.0, t, f, slope, e, r
    cdef int k, i
    if total <= 0.0:
        return 0.0
    t = log(g) if g > 0.0 else 0.0
    for i in range(200):
        e = exp(t)
        f = -total
        slope = 0.0
        for k in range(K):
            r = 1.0 / (rho[k] + e)
            f += (w[k] + n[k]) * e * r
            slope += (w[k] + n[k]) * e * rho[k] * r * r
        if f > 0.0:
            high = t
        else:
            low = t
        if fabs(f) <= 1e-14 * total or high - low < 1e-15:
            break
        t -= f / slope if slope > 0.0 else 0.0
        if not low < t < high:
            t = 0.5 * (low + high)
    return exp(t)


cdef inline const double* exposure_of(
    Py_ssize_t u, const double[::1] shared, const double[:, ::1] own, const int[::1] at,
    const double[::1] g, double* filled,
) noexcept nogil:
    """Return the exposure (K,) of a row; `filled` (K,) holds that of a topic model."""
    cdef Py_ssize_t k
    if g.shape[0]:
        for k in range(shared.shape[0]):
            filled[k] = g[u]
        return filled
    if at.shape[0] and at[u] >= 0:
        return &own[at[u], 0]
    return &shared[0]


cdef inline void fill_moments(
    const Sizes* size, const Link* link, Py_ssize_t u, const double[:, ::1] loadings,
    const double[:, ::1] products, const double[:, ::1] m, const double[:, ::1] cov,
    double* pairs, double* mean, double* var, double* log_r, double* rho,
) noexcept nogil:
    """Fill the moments of lt_k . v and of the rates of a row."""
    cdef int k
    if size.F:
        project(size, &m[u, 0], &cov[u, 0], &loadings[0, 0], &products[0, 0], pairs, mean, var)
        moments(link, size.K, mean, var, log_r, rho)
        return
    for k in range(size.K):
        mean[k] = var[k] = log_r[k] = 0.0
        rho[k] = 1.0
