# One row: its bits with the weights integrated out, its new features, its missing cells.
# Part of `_glfm.pyx`.

# ---------------------------------------------------------------- random decisions

cdef int scripted(Script* script, const double* p, int n) noexcept nogil:
    cdef int i, at = script.n_made, pick = 0
    if at < script.n_choices:
        pick = script.choices[at]
    if at < script.capacity:
        script.made[at] = pick
        for i in range(n):
            script.probabilities[at * script.width + i] = p[i]
    script.n_made += 1
    return pick


cdef void shuffle(bitgen_t* bitgen, int n, int* order) noexcept nogil:
    """Permute uniformly: Fisher and Yates, several steps from one 32-bit word.

    A word times the number of options has the option in its upper half, and in the lower one the
    word for the next step. The few words that favour some options are drawn again [Lemire 2019];
    the product of the steps' options takes the place of their number.
    """
    cdef int i = n, j, steps, k, held
    cdef int[8] options
    cdef uint32_t word, product, surplus
    cdef uint64_t wide
    while i > 1:
        product = 1
        steps = 0
        while steps < 8 and i - steps > 1 and <uint64_t> product * <uint32_t> (i - steps) < 1 << 24:
            product *= <uint32_t> (i - steps)
            steps += 1
        surplus = (<uint32_t> 0 - product) % product  # 2^32 modulo product
        while True:
            word = bitgen.next_uint32(bitgen.state)
            for k in range(steps):
                wide = <uint64_t> word * <uint32_t> (i - k)
                options[k] = <int> (wide >> 32)
                word = <uint32_t> wide
            if word >= surplus:
                break
        for k in range(steps):
            i -= 1
            j = options[k]
            held = order[i]
            order[i] = order[j]
            order[j] = held


cdef void scripted_shuffle(Model* m, int n) noexcept nogil:
    """The same, each step a decision of its own."""
    cdef int i, j, k, held
    for i in range(n - 1, 0, -1):
        for k in range(i + 1):
            m.chol[k] = 1.0 / (i + 1)
        j = scripted(m.script, m.chol, i + 1)
        held = m.order[i]
        m.order[i] = m.order[j]
        m.order[j] = held


cdef bint choose_flip(Model* m, double log_odds, double limit) noexcept nogil:
    """Return whether an event of these log odds happens: whether they are above a random limit."""
    cdef double[2] both
    if m.script == NULL:
        return log_odds > limit
    both[1] = 1.0 / (1.0 + exp(-log_odds)) if log_odds > -700.0 else 0.0
    both[0] = 1.0 - both[1]
    return scripted(m.script, both, 2) == 1


cdef int choose_weighted(Model* m, double* p, int n) noexcept nogil:
    """Choose one of 0..n-1 with probabilities p (summing to 1)."""
    cdef int i
    cdef double u, total = 0.0
    if m.script != NULL:
        return scripted(m.script, p, n)
    u = random_standard_uniform(m.bitgen)
    for i in range(n - 1):
        total += p[i]
        if u < total:
            return i
    return n - 1


# ---------------------------------------------------------------- one row

cdef void move_feature(double* x, int width, int n, int k, int last, bint square) noexcept nogil:
    """Let row (and column, when square) `last` of x take the place of k; clear it."""
    cdef int i
    if k != last:
        for i in range(n):
            x[k * width + i] = x[last * width + i]
        if square:
            for i in range(n):
                x[i * width + k] = x[i * width + last]
    for i in range(n):
        x[last * width + i] = 0.0
    if square:
        for i in range(n):
            x[i * width + last] = 0.0


cdef void drop_column(Model* m, int k) noexcept nogil:
    """Remove feature k, which no row uses; the last column takes its place. O(N + K + S)."""
    cdef int last = m.K - 1, group
    cdef size_t n
    if k != last:
        for n in range(<size_t> m.N):
            m.Z[n * m.C + k] = m.Z[n * m.C + last]
    for n in range(<size_t> m.N):
        m.Z[n * m.C + last] = 0
    move_feature(m.M, m.width_S, m.S, k, last, False)
    move_feature(m.L, m.width_S, m.S, k, last, False)
    move_feature(m.ZZ, m.width_C, m.K, k, last, True)
    for group in range(m.G):
        move_feature(inverse(m, group), m.width_C, m.K, k, last, True)
        m.v[group * m.width_C + last] = 0.0
    m.z[k] = m.z[last]
    m.z[last] = 0.0
    m.count[k] = m.count[last]
    m.K = last


cdef void add_column(Model* m) noexcept nogil:
    """Append a feature that only the current row uses: A gains tau on its diagonal, M zeros.

    v = A z gains tau z, and q = z A z' gains tau.
    """
    cdef int k = m.K, group
    for group in range(m.G):
        inverse(m, group)[k * m.width_C + k] = m.tau[group]
        m.v[group * m.width_C + k] = m.tau[group]
        m.q[group] += m.tau[group]
    m.z[k] = 1.0
    m.flipped[m.n_flipped] = k
    m.n_flipped += 1
    m.count[k] = 0
    m.K += 1


cdef int remove_row(Model* m) noexcept nogil:
    """Take the loaded row out; drop the features that only it used and return their number.

    Leaves v = A z, q = z A z' and r = ytil - z M of the row without the dropped features, and the
    dot products of its residual with every feature's means. L and ZZ keep the row for now.
    """
    cdef int k, i, group, n_single = 0
    m.taken_out = False
    multiply_features(m)
    predict_row(m)
    for i in range(m.n_active):
        m.count[m.active[i]] -= 1
    for group in range(m.G):
        if not 1.0 - m.q[group] > SINGULAR:
            m.taken_out = True
    if m.taken_out:
        add_statistics(m, -1.0)
    else:
        take_out(m)
    for k in range(m.K - 1, m.bias - 1, -1):
        if m.count[k] == 0:
            drop_column(m, k)
            n_single += 1
    if n_single > 0:
        list_active(m)
    if m.taken_out and rebuild(m) != 0:
        return -1
    if m.taken_out or n_single > 0:
        multiply_features(m)
        predict_row(m)
        move_means(m, 0.0)
    memcpy(m.row_before, m.row, m.width_S * sizeof(double))
    memcpy(m.z_before, m.z, m.width_C * sizeof(double))
    memcpy(m.before, m.active, m.n_active * sizeof(int))
    m.n_before = m.n_active
    m.n_flipped = 0
    return n_single


cdef void add_changes(Model* m, bint redrawn) noexcept nogil:
    """Bring L and ZZ up to date with the row's bits and, where `redrawn`, pseudo-observations."""
    cdef int i, k, width_K = padded(m.K)
    cdef double* difference = m.mean
    if m.taken_out:
        add_statistics(m, 1.0)
        return
    if redrawn:
        glfm_subtract(m.width_S, m.row, m.row_before, difference)
        glfm_add_to_rows(m.n_before, m.before, m.width_S, 1.0, difference, m.width_S, m.L)
    for i in range(m.n_flipped):
        k = m.flipped[i]
        glfm_axpy(m.width_S, 2.0 * m.z[k] - 1.0, m.row, m.L + <size_t> k * m.width_S)
    if m.n_flipped > 0:
        glfm_add_to_rows(m.n_before, m.before, width_K, -1.0, m.z_before, m.width_C, m.ZZ)
        glfm_add_to_rows(m.n_active, m.active, width_K, 1.0, m.z, m.width_C, m.ZZ)


cdef double log_evidence(Model* m, int group, double q, double R2, int n_extra) noexcept nogil:
    """-S_obs/2 log v - R2/(2 v),  v = 1 + q + n_extra tau: row n given all others, weights out."""
    cdef double v = 1.0 + q + n_extra * m.tau[group]
    return -0.5 * m.n_seen[group] * log(v) - 0.5 * R2 / v


cdef void start_evidence(Model* m, int n_single) noexcept nogil:
    """Fill the square R2 of the observed residual and the number seen per group; log evidence."""
    cdef int segment, start, end, group
    for group in range(m.G):
        m.R2[group] = 0.0
        m.n_seen[group] = 0.0
    for segment in range(m.n_segments):
        start = m.segments[3 * segment]
        end = segment_end(m, segment)
        group = m.segments[3 * segment + 2]
        m.R2[group] += glfm_dot(end - start, m.weighted + start, m.r + start)
        m.n_seen[group] += glfm_dot(end - start, m.seen + start, m.seen + start)
    m.evidence[0] = 0.0
    for group in range(m.G):
        m.scaled[group] = m.R2[group] / (1.0 + m.q[group] + n_single * m.tau[group])
        m.evidence[0] += log_evidence(m, group, m.q[group], m.R2[group], n_single)


cdef void bound_flips(Model* m, int n_single) noexcept nogil:
    """Fill `gain`: upper bounds of the log odds of all flips, without a logarithm."""
    cdef int group, k
    for k in range(m.K):
        m.gain[k] = m.odds[k] + MARGIN
    for group in range(m.G):
        glfm_bound_flips(padded(m.K), m.z, m.v + group * m.width_C, m.diagonal + group * m.width_C,
                         m.dots + group * m.width_C, m.squares + group * m.width_C, m.q[group],
                         m.R2[group], m.n_seen[group], m.scaled[group],
                         1.0 + n_single * m.tau[group], m.gain)


cdef bint update_bit(Model* m, int k, int n_single) noexcept nogil:
    """Draw bit k from its conditional, the row's singletons kept in v; return whether it flipped."""
    cdef double d, log_odds, after = 0.0
    cdef int group, at
    d = 1.0 - 2.0 * m.z[k]  # +1 switches on, -1 off
    log_odds = m.odds[k]
    for group in range(m.G):
        at = group * m.width_C + k
        m.c[group] = m.q[group] + (2.0 * d * m.v[at] + m.diagonal[at])
        m.g[group] = max(m.R2[group] + (m.squares[at] - 2.0 * d * m.dots[at]), 0.0)
        after += log_evidence(m, group, m.c[group], m.g[group], n_single)
    log_odds += after - m.evidence[0]
    if not choose_flip(m, log_odds, m.limit[k]):
        return False
    m.z[k] += d
    m.evidence[0] = after
    for group in range(m.G):
        glfm_axpy(padded(m.K), d, inverse(m, group) + <size_t> k * m.width_C,
                  m.v + group * m.width_C)
        m.q[group] = m.c[group]
        m.R2[group] = m.g[group]
        m.scaled[group] = m.R2[group] / (1.0 + m.q[group] + n_single * m.tau[group])
    glfm_axpy(m.width_S, -d, m.M + <size_t> k * m.width_S, m.r)
    glfm_masked_axpy(m.width_S, -d, m.seen, m.M + <size_t> k * m.width_S, m.weighted)
    m.flipped[m.n_flipped] = k
    m.n_flipped += 1
    return True


cdef void draw_limits(Model* m) noexcept nogil:
    """Draw log(u / (1 - u)), u uniform, which the log odds of a flip must be above."""
    cdef int k
    for k in range(m.bias, m.K):
        m.limit[k] = m.bitgen.next_double(m.bitgen.state) if m.script == NULL else 0.0
    glfm_log_odds(padded(m.K), m.limit)


cdef int list_open(Model* m, int start, int end) noexcept nogil:
    """List the places from `start` to `end` whose bound allows a flip; return their number."""
    cdef int i, n = 0
    for i in range(start, end):  # no branch that the processor would have to guess
        m.open[n] = i
        n += not m.gain[m.order[i]] < m.limit[m.order[i]]
    return n


cdef void update_bits(Model* m, int n_single) noexcept nogil:
    """Visit the row's features in a fresh uniformly random order (a fixed one is biased).

    A bit flips when its log odds are above log(u / (1 - u)), u uniform; for most a bound of the
    log odds tells that they are not.
    """
    cdef int i, j, k, group, ahead, n_open, n = m.K - m.bias
    for i in range(n):
        m.order[i] = m.bias + i
    for group in range(m.G):
        for k in range(m.bias, m.K):
            m.diagonal[group * m.width_C + k] = inverse(m, group)[k * m.width_C + k]
    if m.script == NULL:
        shuffle(m.bitgen, n, m.order)
    else:
        scripted_shuffle(m, n)
    draw_limits(m)
    start_evidence(m, n_single)
    for k in range(m.bias, m.K):
        m.odds[k] = (1.0 - 2.0 * m.z[k]) * m.prior[m.count[k]]
    bound_flips(m, n_single)
    i, ahead = 0, n
    while i < n:
        if i == ahead:
            ahead = min(i + AHEAD, n)
            fill_dots(m, ahead - i, m.order + i)
            bound_flips(m, n_single)
        n_open = list_open(m, i, ahead)
        i = ahead
        for j in range(n_open):
            if update_bit(m, m.order[m.open[j]], n_single):
                i = ahead = m.open[j] + 1
                break


cdef int choose_new_features(Model* m) noexcept nogil:
    """Draw the row's number of singletons:  p(k) ~ Poisson(k; alpha/N) evidence(k)."""
    cdef int k, group, n, largest = m.max_features - (m.K - m.bias)
    cdef double best, total
    if largest > MAX_NEW:
        largest = MAX_NEW
    if largest <= 0 or not m.alpha > 0.0:
        return 0
    n = largest + 1
    best = -1e308
    for k in range(n):
        m.new_weight[k] = m.new_prior[k]
        for group in range(m.G):
            m.new_weight[k] += log_evidence(m, group, m.q[group], m.R2[group], k)
        if m.new_weight[k] > best:
            best = m.new_weight[k]
        elif m.new_weight[k] < best - 40.0 and m.script == NULL:
            n = k + 1  # the rest is below 1e-17 of the largest
            break
    total = 0.0
    for k in range(n):
        m.new_weight[k] = exp(m.new_weight[k] - best)
        total += m.new_weight[k]
    for k in range(n):
        m.new_weight[k] /= total
    return choose_weighted(m, m.new_weight, n)


cdef bint redraw_missing(Model* m, int n, int n_new) noexcept nogil:
    """y_ns ~ N(z M_s, sd_s^2 (1 + q + n_new tau)) at the row's missing cells, if it has any."""
    cdef int s, i = 0, segment, group
    cdef double scale
    cdef double* y = m.y + <size_t> n * m.S
    cdef double* row = m.row
    cdef double* r = m.r
    for segment in range(m.n_segments):
        if i == m.n_missing:
            break
        group = m.segments[3 * segment + 2]
        scale = sqrt(1.0 + m.q[group] + n_new * m.tau[group])
        while i < m.n_missing and m.missing[i] < m.segments[3 * segment + 1]:
            s = m.missing[i]
            row[s] -= r[s]
            r[s] = scale * random_standard_normal(m.bitgen)
            row[s] += r[s]
            y[s] = row[s] * m.sd[s]
            i += 1
    return m.n_missing > 0


cdef int update_row(Model* m, int n) noexcept nogil:
    """One exact transition of row n: bits, new features, missing pseudo-observations."""
    cdef int k, n_single, n_new
    cdef bint redrawn = False
    cdef uint8_t* bits = m.Z + <size_t> n * m.C
    load_row(m, n)
    n_single = remove_row(m)
    if n_single < 0:
        return 1
    update_bits(m, n_single)
    n_new = choose_new_features(m)
    if m.bitgen != NULL:
        redrawn = redraw_missing(m, n, n_new)
    for k in range(n_new):
        add_column(m)
    list_active(m)
    add_changes(m, redrawn)
    put_in(m)
    for k in range(m.K):
        bits[k] = <uint8_t> m.z[k]
        m.count[k] += bits[k]
    return 0
