"""Extremely randomised trees of one column on the others, and what their leaves say.

Cells are z (D, N), a column's cells next to one another, all of them filled. A node asks whether
z[f, n] <= t, of a column f of unordered levels whether z[f, n] = t, both f and t at random: the
best of a few such questions [Geurts and others 2006]. Trees stand one behind the other in arrays
over nodes:

    feature    f, or -1 in a leaf
    threshold  t in single precision, as cells are; of a leaf, how many members it has
    child      the left child, whose neighbour is the right one; of a leaf, its first member

and `members` are rows. Each row is left out of as many of the T trees of a column as any other: a
hash of a seed and the row says of which, so that it needs no memory.
"""

import numpy as np

from libc.stdint cimport uint32_t, uint64_t
from numpy.random cimport bitgen_t

from glfm_cli._kernels._variates cimport bitgen_of

cdef enum:
    PATIENCE = 8  # thresholds of a column that are tried, until both sides have members enough
    BYTES = 8  # of a register, each of which counts
    BYTE = 255  # at most
    ABREAST = 4  # rows that go down a tree together
    SHAPED = 64  # members of a row's leaves, at most, by which they are parted


cdef inline Py_ssize_t below(uint64_t bits, Py_ssize_t n) noexcept nogil:
    """Return a number below n, uniform but for n / 2^32, by the lower 32 random bits. O(1)."""
    return <Py_ssize_t> ((<uint64_t> <uint32_t> bits * <uint64_t> n) >> 32)


cdef inline bint sees(
    uint64_t seed, Py_ssize_t row, Py_ssize_t t, Py_ssize_t T, Py_ssize_t left_out
) noexcept nogil:
    """Return whether tree t of T sees a row, which as many as `left_out` do not. O(1)."""
    cdef uint64_t x = seed + (<uint64_t> row + 1) * <uint64_t> 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9  # SplitMix64
    x = (x ^ (x >> 27)) * <uint64_t> 0x94D049BB133111EB
    x ^= x >> 31
    return <Py_ssize_t> ((x + <uint64_t> t) % <uint64_t> T) >= left_out


cdef inline bint goes_left(double x, double t, bint nominal) noexcept nogil:
    """Return the answer to a node's question."""
    return x == t if nominal else x <= t


cdef double gain_of_numbers(
    const double* x, const int* members, Py_ssize_t n, double t, bint nominal,
    const double* away, Py_ssize_t least,
) noexcept nogil:
    """Return by what a question lowers the sum of squares of `away`, of mean 0; -1 if unfit. O(n).
    """
    cdef Py_ssize_t i, n_left = 0
    cdef double left = 0.0
    cdef bint side
    if nominal:
        for i in range(n):
            side = x[members[i]] == t
            n_left += side
            left += side * away[i]
    else:
        for i in range(n):
            side = x[members[i]] <= t
            n_left += side
            left += side * away[i]
    if n_left < least or n - n_left < least:
        return -1.0
    return left * left * n / (<double> n_left * (n - n_left))


cdef inline Py_ssize_t tally(
    const double* x, const int* members, Py_ssize_t n, double t, bint nominal,
    const double* codes, double* count,
) noexcept nogil:
    """Add the members of each level that go left to `count`; return how many go left. O(n)."""
    cdef Py_ssize_t i, n_left = 0
    cdef bint side
    for i in range(n):
        side = goes_left(x[members[i]], t, nominal)
        n_left += side
        count[<int> codes[i]] += side
    return n_left


cdef inline Py_ssize_t tally_few(
    const double* x, const int* members, Py_ssize_t n, double t, bint nominal,
    const double* codes, int n_levels, double* count,
) noexcept nogil:
    """Do as `tally` for up to BYTES levels: a sum in a register does not wait for memory. O(n)."""
    cdef Py_ssize_t i = 0, end, more, n_left = 0
    cdef uint64_t sums, side
    cdef int r
    while i < n:
        end, sums = min(i + BYTE, n), 0
        while i < end:
            side = goes_left(x[members[i]], t, nominal)
            sums += side << (8 * <int> codes[i])
            i += 1
        for r in range(n_levels):
            more = (sums >> (8 * r)) & BYTE
            count[r] += more
            n_left += more
    return n_left


cdef double gain_of_levels(
    const double* x, const int* members, Py_ssize_t n, double t, bint nominal,
    const double* codes, Py_ssize_t least, int n_levels, double* count,
) noexcept nogil:
    """Return the sum over both sides of squared counts of levels / members; -1 if unfit.

    count : those of all members, then as much scratch. O(n + R).
    """
    cdef Py_ssize_t i, n_left
    cdef double left = 0.0, right = 0.0
    cdef double* here = count + n_levels
    for i in range(n_levels):
        here[i] = 0.0
    if n_levels <= BYTES and nominal:  # a loop for each answer, without a branch inside
        n_left = tally_few(x, members, n, t, True, codes, n_levels, here)
    elif n_levels <= BYTES:
        n_left = tally_few(x, members, n, t, False, codes, n_levels, here)
    elif nominal:
        n_left = tally(x, members, n, t, True, codes, here)
    else:
        n_left = tally(x, members, n, t, False, codes, here)
    if n_left < least or n - n_left < least:
        return -1.0
    for i in range(n_levels):
        left += here[i] * here[i]
        right += (count[i] - here[i]) * (count[i] - here[i])
    return left / n_left + right / (n - n_left)


cdef bint ask(
    const double* x, const int* members, Py_ssize_t n, bint nominal, bitgen_t* bitgen, float* t,
) noexcept nogil:
    """Set t between two members at random, or to the level of one; return False if all are alike.

    O(1), and O(n) where the two are alike.
    """
    cdef uint64_t bits = bitgen.next_uint64(bitgen.state)
    cdef Py_ssize_t i, start = below(bits, n)
    cdef double first = x[members[below(bits >> 32, n)]], other, low, high
    for i in range(start, start + n):
        other = x[members[i if i < n else i - n]]
        if other != first:
            if nominal:
                t[0] = <float> first
                return True
            low, high = (first, other) if first < other else (other, first)
            t[0] = <float> (0.5 * (low + high))
            if t[0] >= high:
                t[0] = <float> low
            if low <= t[0] < high:
                return True
    return False


cdef bint spread(
    const double* y, const int* members, Py_ssize_t n, int n_levels, double* away, double* count,
) noexcept nogil:
    """Fill the distances of members from their mean, or codes and counts; return if they differ.

    O(n + R).
    """
    cdef Py_ssize_t i
    cdef double first = y[members[0]], total = 0.0
    cdef bint differ = False
    for i in range(n_levels):
        count[i] = 0.0
    for i in range(n):
        away[i] = y[members[i]]
        differ = differ or away[i] != first
        total += away[i]
    if n_levels:
        for i in range(n):
            count[<Py_ssize_t> away[i]] += 1.0
    else:
        total /= n
        for i in range(n):
            away[i] -= total
    return differ


cdef Py_ssize_t part(
    const double[:, ::1] z, Py_ssize_t f, double t, bint nominal, int[::1] members,
    Py_ssize_t start, Py_ssize_t n,
) noexcept nogil:
    """Put the members that go left before the others; return how many. O(n)."""
    cdef Py_ssize_t i = start, j = start + n - 1
    cdef int held
    while i <= j:
        if goes_left(z[f, members[i]], t, nominal):
            i += 1
        else:
            held = members[i]
            members[i] = members[j]
            members[j] = held
            j -= 1
    return i - start


def grow(
    const double[:, ::1] z,            # in (D, N)
    const unsigned char[::1] nominal,  # in (D,) 1 = levels without an order
    int n_levels,                      # of the column, if its levels have no order, else 0
    const double[::1] y,               # in (N,) what its trees forecast
    const int[::1] donors,             # in (n,) rows in which it is observed
    uint64_t seed,
    Py_ssize_t left_out,               # trees that a row is left out of
    Py_ssize_t tries,                  # columns that a node asks about,
    Py_ssize_t each,                   # and thresholds of each
    Py_ssize_t least,
    object rng,
    int[::1] root,                     # out (T,)
    int[::1] feature,                  # out, T (2 n / least + 3) nodes at most
    float[::1] threshold,              # out
    int[::1] child,                    # out
    int[::1] members,                  # out, T n at most
    int[::1] pool,                     # in-out (P,) columns that may be asked about, in any order
    double[::1] away,                  # scratch (n,)
    double[::1] count,                 # scratch (2 n_levels + 1,)
    const int[::1] unit,               # in (N,) rows of one are left out of trees together, or (0,)
):
    """Grow T trees of a column; return how many nodes and members they have.

    Nodes are visited in order, each a leaf until it is split. O(T tries each n log n).
    """
    cdef Py_ssize_t T = root.shape[0], P = pool.shape[0], t, i, j, node, start, n, f, asked, left
    cdef Py_ssize_t n_nodes = 0, n_members = 0, fit, unfit
    cdef bint alone = unit.shape[0] == 0
    cdef int best, held
    cdef float at = 0.0, best_at = 0.0
    cdef double gain, best_gain
    cdef const double* x
    cdef const int* here
    cdef double* counts = &count[0]
    cdef bitgen_t* bitgen = bitgen_of(rng)
    with rng.bit_generator.lock, nogil:
        for t in range(T):
            root[t] = <int> n_nodes
            start = n_members
            for i in range(donors.shape[0]):
                if sees(seed, donors[i] if alone else unit[donors[i]], t, T, left_out):
                    members[n_members] = donors[i]
                    n_members += 1
            if n_members == start:  # few donors may all be left out
                for i in range(donors.shape[0]):
                    members[n_members] = donors[i]
                    n_members += 1
            node = n_nodes
            n_nodes += 1
            feature[node], child[node] = -1, <int> start
            threshold[node] = <float> (n_members - start)
            while node < n_nodes:
                start, n = child[node], <Py_ssize_t> threshold[node]
                best, best_gain, asked = -1, -1.0, 0
                here = &members[start]
                if n >= 2 * least and spread(&y[0], here, n, n_levels, &away[0], counts):
                    for i in range(P):
                        if asked == tries:
                            break
                        j = i + below(bitgen.next_uint64(bitgen.state), P - i)
                        held = pool[j]
                        pool[j] = pool[i]
                        pool[i] = held
                        f, x, fit, unfit = held, &z[held, 0], 0, 0
                        while fit < each and unfit < PATIENCE:
                            if not ask(x, here, n, nominal[f], bitgen, &at):
                                break
                            if n_levels:
                                gain = gain_of_levels(
                                    x, here, n, at, nominal[f], &away[0], least, n_levels, counts
                                )
                            else:
                                gain = gain_of_numbers(
                                    x, here, n, at, nominal[f], &away[0], least
                                )
                            if gain >= 0.0:
                                fit += 1
                            else:
                                unfit += 1
                            if gain > best_gain:
                                best, best_gain, best_at = held, gain, at
                        if fit:
                            asked += 1
                if best >= 0:
                    left = part(z, best, best_at, nominal[best], members, start, n)
                    feature[node], threshold[node], child[node] = best, best_at, <int> n_nodes
                    for i in range(2):
                        feature[n_nodes], child[n_nodes] = -1, <int> (start + i * left)
                        threshold[n_nodes] = <float> (n - left if i else left)
                        n_nodes += 1
                node += 1
    return n_nodes, n_members


cdef class ColumnTrees:
    """T trees of a column, and the rows of whose cells of it they are to say something."""

    cdef const double[:, ::1] z
    cdef const unsigned char[::1] nominal
    cdef const Py_ssize_t[::1] rows
    cdef const int[::1] own, root, feature, child, members, unit
    cdef const double[::1] y
    cdef const float[::1] threshold
    cdef uint64_t seed
    cdef Py_ssize_t left_out
    cdef int[::1] who, where               # (n,) scratch: rows that hear a tree, their leaves

    def __init__(
        self,
        const double[:, ::1] z,            # (D, n_rows) of the rows that are asked for
        const unsigned char[::1] nominal,  # (D,)
        const Py_ssize_t[::1] rows,        # (n,) which of them
        const int[::1] own,                # (n,) the donor that a row is itself, or -1
        const double[::1] y,               # (N,) the column in the rows of the fit
        const int[::1] root,               # (T,)
        uint64_t seed,
        Py_ssize_t left_out,
        const int[::1] feature,
        const float[::1] threshold,
        const int[::1] child,
        const int[::1] members,
        const int[::1] unit,               # as `grow` has it
    ):
        self.unit = unit
        self.z, self.nominal, self.rows, self.own, self.y = z, nominal, rows, own, y
        self.root, self.seed, self.left_out = root, seed, left_out
        self.feature, self.threshold, self.child, self.members = feature, threshold, child, members
        self.who, self.where = np.empty((2, rows.shape[0]), dtype=np.intc)

    cdef inline bint hears(self, Py_ssize_t i, Py_ssize_t t) noexcept nogil:
        """Return whether row i hears tree t: all, but a donor those that have not seen it. O(1)."""
        cdef int row = self.own[i]
        if row < 0 or self.left_out == 0:
            return True
        if self.unit.shape[0]:
            row = self.unit[row]
        return not sees(self.seed, row, t, self.root.shape[0], self.left_out)

    cdef Py_ssize_t reach(self, Py_ssize_t t) noexcept nogil:
        """Fill which rows hear tree t, and which leaves they reach; return how many. O(n depth).

        A step waits for memory: some rows take theirs together.
        """
        cdef Py_ssize_t i, k, f, at, n = 0
        cdef Py_ssize_t[ABREAST] node, row
        cdef bint left, moved
        for i in range(self.rows.shape[0]):
            self.who[n] = <int> i
            n += self.hears(i, t)
        i = 0
        while i + ABREAST <= n:
            for k in range(ABREAST):
                node[k], row[k] = self.root[t], self.rows[self.who[i + k]]
            moved = True
            while moved:
                moved = False
                for k in range(ABREAST):
                    at = node[k]
                    f = self.feature[at]
                    if f >= 0:
                        left = goes_left(self.z[f, row[k]], self.threshold[at], self.nominal[f])
                        node[k], moved = self.child[at] + (0 if left else 1), True
            for k in range(ABREAST):
                self.where[i + k] = <int> node[k]
            i += ABREAST
        for i in range(i, n):
            self.where[i] = <int> self.leaf(self.who[i], t)
        return n

    cdef inline Py_ssize_t size(self, Py_ssize_t leaf) noexcept nogil:
        """Return how many members a leaf has. O(1)."""
        return <Py_ssize_t> self.threshold[leaf]

    cdef inline double donated(self, Py_ssize_t i, Py_ssize_t t, uint64_t bits) noexcept nogil:
        """Return the value of a member of row i's leaf in tree t, at random by `bits`."""
        cdef Py_ssize_t leaf = self.leaf(i, t)
        return self.y[self.members[self.child[leaf] + below(bits >> 32, self.size(leaf))]]

    cdef inline Py_ssize_t leaf(self, Py_ssize_t i, Py_ssize_t t) noexcept nogil:
        """Return the leaf of row i in tree t. O(depth)."""
        cdef Py_ssize_t n = self.rows[i], node = self.root[t], f = self.feature[node]
        cdef bint left
        while f >= 0:
            left = goes_left(self.z[f, n], self.threshold[node], self.nominal[f])
            node = self.child[node] + (0 if left else 1)
            f = self.feature[node]
        return node


cdef void part_in_order(
    double* x, double* share, Py_ssize_t n, Py_ssize_t C, double* out
) noexcept nogil:
    """Sort n > 0 numbers; fill mean and variance (C, 2) of parts in order that weigh the same.

    share : (n,) weights, which follow their numbers. O(n^2), n at most SHAPED
    """
    cdef Py_ssize_t i, j, c
    cdef double value, weight, whole = 0.0, each, left, taken, mass, mean, square, away
    for i in range(n):
        value, weight, j = x[i], share[i], i
        whole += weight
        while j > 0 and x[j - 1] > value:
            x[j], share[j] = x[j - 1], share[j - 1]
            j -= 1
        x[j], share[j] = value, weight
    each, i, left = whole / C, 0, share[0]
    for c in range(C):
        mass = mean = square = 0.0
        while i < n and mass < each * (1.0 - 1e-9):
            taken = min(left, each - mass)
            mass += taken
            away = x[i] - mean
            mean += away * taken / mass
            square += taken * away * (x[i] - mean)
            left -= taken
            if left <= each * 1e-9:
                i += 1
                left = share[i] if i < n else 0.0
        out[2 * c], out[2 * c + 1] = mean, square / mass


def fill_moments(
    ColumnTrees of,
    double weight,                     # members that the column as a whole is worth
    double middle,                     # its mean,
    double variance,                   # its variance in leaves,
    double atom,                       # a value apart from the others, NaN for none,
    double at_atom,                    # and its share
    double[:, ::1] out,                # out (n, 5)
    double[:, :, ::1] parts,           # out (n, C, 2); C may be 0
):
    """Fill what trees say of a column of numbers: means over those that are heard.

    Of the values beside the atom: their mean, their variance in a leaf, (sum of squares + weight
    variance) / (members + weight), and that of the mean between trees; the share of the atom,
    (members at it + weight at_atom) / (members + weight); and how many trees are heard: all, but
    of a row that is a donor itself those that have not seen it. O(n T (depth + leaf)).

    Also, of rows that are no donors, mean and variance of C parts of the members beside the atom,
    in order, of equal weight, where each tree weighs the same; 0 without a member. O(n SHAPED^2).
    """
    cdef Py_ssize_t i, j, k, t, leaf, T = of.root.shape[0], C = parts.shape[1], n = parts.shape[0]
    cdef Py_ssize_t most = max(SHAPED // T, 1), first, size, number_of
    cdef double x, away, number, beside, mean, square, heard
    cdef double[SHAPED] value, share
    cdef int[:, ::1] reached = np.empty((n if C else 0, min(T, SHAPED)), dtype=np.intc)
    with nogil:
        out[:] = 0.0
        for t in range(T):
            for k in range(of.reach(t)):
                i, leaf = of.who[k], of.where[k]
                if C and t < SHAPED:
                    reached[i, t] = <int> leaf
                number = beside = mean = square = 0.0
                for j in range(of.child[leaf], of.child[leaf] + of.size(leaf)):
                    if of.members[j] == of.own[i]:
                        continue
                    x = of.y[of.members[j]]
                    number += 1.0
                    if x != atom:  # by updates of mean and squares
                        beside += 1.0
                        away = x - mean
                        mean += away / beside
                        square += away * (x - mean)
                if beside == 0.0:
                    mean = middle
                out[i, 4] += 1.0
                heard = out[i, 4]
                away = mean - out[i, 0]
                out[i, 0] += away / heard
                out[i, 2] += away * (mean - out[i, 0])
                out[i, 1] += (square + weight * variance) / (beside + weight)
                out[i, 3] += (number - beside + weight * at_atom) / (number + weight)
        for i in range(of.rows.shape[0]):
            for j in range(1, 4):
                out[i, j] /= out[i, 4]
        if C:
            parts[:] = 0.0
            for i in range(n):
                number_of = 0
                if of.own[i] >= 0:
                    continue
                for t in range(min(T, SHAPED)):
                    leaf, first = reached[i, t], number_of
                    size = min(of.size(reached[i, t]), most)
                    for j in range(size):
                        k = of.child[leaf] + j * of.size(leaf) // size
                        x = of.y[of.members[k]]
                        if x != atom:
                            value[number_of] = x
                            number_of += 1
                    for k in range(first, number_of):
                        share[k] = 1.0 / (number_of - first)
                if number_of:
                    part_in_order(value, share, number_of, C, &parts[i, 0, 0])


def fill_levels(
    ColumnTrees of,
    double weight,                     # members that the column as a whole is worth
    const double[::1] prior,           # in (R,) adding up to 1
    double[:, ::1] p,                  # out (n, R)
):
    """Fill the mean over trees of (members at a level + weight prior) / (members + weight).

    Trees are heard as by `fill_moments`. O(n T (depth + leaf + R)).
    """
    cdef Py_ssize_t i, j, k, r, t, leaf, n, T = of.root.shape[0], R = prior.shape[0]
    cdef double each
    cdef double[::1] heard = np.zeros(of.rows.shape[0])
    with nogil:
        p[:] = 0.0
        for t in range(T):
            for k in range(of.reach(t)):
                i, leaf = of.who[k], of.where[k]
                n = 0
                for j in range(of.child[leaf], of.child[leaf] + of.size(leaf)):
                    n += of.members[j] != of.own[i]
                each = 1.0 / (n + weight)
                for j in range(of.child[leaf], of.child[leaf] + of.size(leaf)):
                    if of.members[j] != of.own[i]:
                        p[i, <Py_ssize_t> of.y[of.members[j]]] += each
                for r in range(R):
                    p[i, r] += weight * prior[r] * each
                heard[i] += 1.0
        for i in range(of.rows.shape[0]):
            for r in range(R):
                p[i, r] /= heard[i]


def draw_cells(
    ColumnTrees of,
    Py_ssize_t d,
    double[:, ::1] z,  # in-out (D, n_rows) that of which `of` is told
    double middle,     # share of rows that are given the median of three donors
    double atom,       # a value apart from the others, NaN for none, which is no middle
    object rng,
):
    """Give each row the value of a donor: of a member of its leaf in a tree, both at random.

    Three donors are of trees that follow one another. Trees are heard as by `fill_moments`.
    O(n (T + depth)).
    """
    cdef Py_ssize_t i, k, t, T = of.root.shape[0]
    cdef double x, y, other
    cdef uint64_t bits
    cdef bitgen_t* bitgen = bitgen_of(rng)
    with rng.bit_generator.lock, nogil:
        for i in range(of.rows.shape[0]):
            bits = bitgen.next_uint64(bitgen.state)
            t = below(bits, T)
            while not of.hears(i, t):
                t = (t + 1) % T
            x = of.donated(i, t, bits)
            if middle > 0.0 and bitgen.next_double(bitgen.state) < middle:
                other = y = x
                for k in range(2):
                    bits = bitgen.next_uint64(bitgen.state)
                    t = (t + 1) % T
                    while not of.hears(i, t):
                        t = (t + 1) % T
                    other, y = y, of.donated(i, t, bits)
                if x != atom and y != atom and other != atom:
                    x = max(min(x, other), min(max(x, other), y))
            z[d, of.rows[i]] = x
