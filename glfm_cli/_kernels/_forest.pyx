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

from libc.math cimport INFINITY
from libc.stdint cimport uint32_t, uint64_t
from numpy.random cimport bitgen_t

from glfm_cli._kernels._variates cimport bitgen_of

cdef extern from "_questions.h" nogil:
    enum: GLFM_ASKED
    void glfm_answer(
        int n, const int* rows, const float* x, ptrdiff_t ld, const float* low, const float* high,
        const double* away, int* n_left, double* left,
    )
    void glfm_ends(
        int n, const int* rows, const float* x, ptrdiff_t ld, float* least, float* greatest,
    )
    void glfm_answer_of_one(
        int n, const int* rows, const float* x, ptrdiff_t ld, const float* low, const float* high,
        const double* away, int* n_left, double* left,
    )
    void glfm_answer_levels(
        int n, const int* rows, const float* x, ptrdiff_t ld, const float* low, const float* high,
        const int* code, int n_levels, int* count,
    )
    void glfm_answer_levels_of_one(
        int n, const int* rows, const float* x, ptrdiff_t ld, const float* low, const float* high,
        const int* code, int n_levels, int* count,
    )

cdef enum:
    PATIENCE = 8  # thresholds of a column that are tried, until both sides have members enough
    ASKED = GLFM_ASKED  # questions that are answered together
    BY_ROWS = 64  # columns that may be asked about, up to which all stand by rows
    LINE = 16  # single numbers of a line of memory
    ALIKE = -1  # instead of whether a question is fit: there is none
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


cdef struct Node:
    # What a node of a tree asks its members about, and room for what they answer.
    const float* x          # (., width) the lanes of rows
    Py_ssize_t width
    const int* rows         # (n,) those of members, or NULL: the first n
    Py_ssize_t n
    Py_ssize_t least        # members on each side
    int n_levels            # of what is forecast, 0 of numbers
    double* away            # (n,) distances from the mean; of two levels their codes,
    int* code               # of more, these
    double* count           # (n_levels,) members at each level
    float* least_of         # (width,) ends of members' cells
    float* greatest_of
    float* low              # (width,) questions low <= x <= high
    float* high
    int* n_left             # (width,) how many say yes,
    double* left            # (width,) the sum of `away` of them,
    int* at_level           # (width / ASKED, n_levels, ASKED) how many of each of many levels


cdef struct Pool:
    # The P columns that may be asked about.
    Py_ssize_t size
    Py_ssize_t tries        # of a node,
    Py_ssize_t each         # and thresholds of each
    const int* column       # (P,)
    const unsigned char* nominal  # of all columns of the table
    unsigned char* two      # (P,) whether donors have two values at most
    int* order              # (P,) in which a node takes them
    int* fit                # (width,) of a lane whether a threshold was fit, or ALIKE
    bint by_rows            # whether all have a lane each, always filled


cdef double gain(const Node* of, Py_ssize_t lane) noexcept nogil:
    """Return what a question is worth, -1 if a side has too few members. O(R).

    Of numbers by what it lowers the sum of squares; of levels the sum over both sides of squared
    counts / members.
    """
    cdef Py_ssize_t r, R = of.n_levels, n_left = 0, n = of.n
    cdef const int* here = of.at_level + (lane // ASKED) * ASKED * R + lane % ASKED
    cdef double left = 0.0, right = 0.0, some
    if R > 2:
        for r in range(R):
            n_left += here[r * ASKED]
    else:
        n_left = of.n_left[lane]
    if n_left < of.least or n - n_left < of.least:
        return -1.0
    if R == 0:
        return of.left[lane] * of.left[lane] * n / (<double> n_left * (n - n_left))
    for r in range(R):
        if R > 2:
            some = here[r * ASKED]
        else:
            some = of.left[lane] if r else n_left - of.left[lane]
        left += some * some
        right += (of.count[r] - some) * (of.count[r] - some)
    return left / n_left + right / (n - n_left)


cdef bint has_two(const double* x, const int* donors, Py_ssize_t n) noexcept nogil:
    """Return whether donors have no more than two values. O(n)."""
    cdef double first = x[donors[0]], second = first, here
    cdef Py_ssize_t i
    for i in range(1, n):
        here = x[donors[i]]
        if here != first and here != second:
            if second != first:
                return False
            second = here
    return True


cdef inline void look(const Node* of, Py_ssize_t lane) noexcept nogil:
    """Fill the ends of ASKED lanes from `lane` on. O(n)."""
    glfm_ends(
        <int> of.n, of.rows, of.x + lane, of.width, of.least_of + lane, of.greatest_of + lane
    )


cdef void answer(const Node* of, Py_ssize_t lane) noexcept nogil:
    """Answer the ASKED questions from `lane` on, each about the column of its lane. O(n)."""
    cdef int n = <int> of.n
    if of.n_levels > 2:
        glfm_answer_levels(
            n, of.rows, of.x + lane, of.width, of.low + lane, of.high + lane, of.code,
            of.n_levels, of.at_level + lane * of.n_levels,
        )
    else:
        glfm_answer(
            n, of.rows, of.x + lane, of.width, of.low + lane, of.high + lane, of.away,
            of.n_left + lane, of.left + lane,
        )


cdef void answer_of_one(const Node* of, Py_ssize_t lane) noexcept nogil:
    """Answer the first ASKED questions, all about the column of `lane`. O(n)."""
    cdef int n = <int> of.n
    if of.n_levels > 2:
        glfm_answer_levels_of_one(
            n, of.rows, of.x + lane, of.width, of.low, of.high, of.code, of.n_levels, of.at_level
        )
    else:
        glfm_answer_of_one(
            n, of.rows, of.x + lane, of.width, of.low, of.high, of.away, of.n_left, of.left
        )


cdef void ask(
    const Node* of, Py_ssize_t column, bint nominal, bitgen_t* bitgen, Py_ssize_t lane
) noexcept nogil:
    """Put a question about a column whose members differ to a lane.

    The threshold is between two members at random, or the level of one. O(1), and O(n) where the
    two are alike.
    """
    cdef uint64_t bits = bitgen.next_uint64(bitgen.state)
    cdef Py_ssize_t n = of.n, i = below(bits, n), j = below(bits >> 32, n)
    cdef const float* x = of.x + column
    cdef float first = x[(of.rows[j] if of.rows else j) * of.width], other = first
    while other == first:
        other = x[(of.rows[i] if of.rows else i) * of.width]
        i = i + 1 if i + 1 < n else 0
    if nominal:
        of.low[lane] = of.high[lane] = first
    else:
        of.low[lane], of.high[lane] = -INFINITY, between(min(first, other), max(first, other))


cdef inline float between(float low, float high) noexcept nogil:
    """Return what parts two numbers: low <= it < high."""
    cdef float t = <float> (0.5 * (<double> low + high))
    return low if t >= high else t


cdef bint ask_once(
    const Node* of, Py_ssize_t lane, bint nominal, bint two, bitgen_t* bitgen
) noexcept nogil:
    """Ask about the column of a lane there; return False, with no question, if all are alike.

    two : whether the column has no more than two values, of which there is one question.
    """
    cdef float low = of.least_of[lane], high = of.greatest_of[lane]
    if low == high:
        of.low[lane], of.high[lane] = INFINITY, -INFINITY
        return False
    if not two:
        ask(of, lane, nominal, bitgen, lane)
    else:
        of.low[lane] = low if nominal else -INFINITY
        of.high[lane] = low if nominal else between(low, high)
    return True


cdef bint spread(Node* of, const double* y, const int* members) noexcept nogil:
    """Fill the distances of members from their mean, or codes and counts; return if they differ.

    O(n + R).
    """
    cdef Py_ssize_t i, n = of.n
    cdef double first = y[members[0]], total = 0.0
    cdef bint differ = False
    for i in range(of.n_levels):
        of.count[i] = 0.0
    for i in range(n):
        of.away[i] = y[members[i]]
        differ = differ or of.away[i] != first
        total += of.away[i]
    if of.n_levels:
        for i in range(n):
            of.code[i] = <int> of.away[i]
            of.count[of.code[i]] += 1.0
    else:
        total /= n
        for i in range(n):
            of.away[i] -= total
    return differ


cdef struct Best:
    # The best question so far, and how many are as good.
    double gain
    int feature
    float low
    float high
    Py_ssize_t ties


cdef Py_ssize_t part(
    const Node* of, const Best* by, const double* x, const int* donors, int* members, int* room
) noexcept nogil:
    """Put the members that say yes before the others, each in order; return how many. O(n).

    x : the column that they are asked about;  room : (n,) scratch
    """
    cdef Py_ssize_t i, n_left = 0, n_right = 0
    cdef double low = by.low, high = by.high
    cdef bint yes
    cdef int here
    for i in range(of.n):  # without a branch, which would be guessed wrong half the time
        here = members[i]
        yes = (x[donors[here]] >= low) & (x[donors[here]] <= high)
        members[n_left] = room[n_right] = here
        n_left += yes
        n_right += not yes
    for i in range(n_right):
        members[n_left + i] = room[i]
    return n_left


cdef inline void compare(
    Best* best, const Node* of, double gain, int feature, Py_ssize_t lane, bitgen_t* bitgen
) noexcept nogil:
    """Keep a question if it is better, at random one of those that are as good. O(1)."""
    if gain < best.gain or gain < 0.0:
        return
    best.ties = best.ties + 1 if gain == best.gain else 1
    if best.ties == 1 or below(bitgen.next_uint64(bitgen.state), best.ties) == 0:
        best.gain, best.feature = gain, feature
        best.low, best.high = of.low[lane], of.high[lane]


cdef bint insist(
    Best* best, const Node* of, int feature, bint nominal, Py_ssize_t lane, Py_ssize_t each,
    Py_ssize_t fit, bitgen_t* bitgen,
) noexcept nogil:
    """Ask about the column of a lane again, until thresholds are enough; return if one is fit.

    fit : of the one that was asked before. ASKED at a time, in the first lanes. O(n).
    """
    cdef Py_ssize_t unfit = 1 - fit, q, some
    cdef double found
    while fit < each and unfit < PATIENCE:
        some = min(each - fit + PATIENCE - unfit - 1, ASKED)
        for q in range(ASKED):
            if q < some:
                ask(of, lane, nominal, bitgen, q)
            else:
                of.low[q], of.high[q] = INFINITY, -INFINITY
        answer_of_one(of, lane)
        for q in range(some):
            if fit == each or unfit == PATIENCE:
                break
            found = gain(of, q)
            fit += found >= 0.0
            unfit += found < 0.0
            compare(best, of, found, feature, q, bitgen)
    return fit > 0


cdef inline void answer_all(const Node* of) noexcept nogil:
    """Answer the questions of all lanes. O(n width)."""
    cdef Py_ssize_t k
    for k in range(of.width // ASKED):
        answer(of, k * ASKED)


cdef void search(
    Best* best, const Node* of, Pool* may, const double[:, ::1] z, const int* donors,
    const int* members, float* x, bitgen_t* bitgen,
) noexcept nogil:
    """Find the best of the questions of a node, about columns at random until enough are fit.

    x : as `of.x`, whose lanes are filled here unless columns have one each. O(n tries each).
    """
    cdef Py_ssize_t P = may.size, first, last = 0, asked = 0, i, k, lane
    cdef int f
    cdef double found
    while last < P and asked < may.tries:
        first, last = last, min(P, last + may.tries - asked)
        for k in range(first, last):
            if P > may.tries:
                i = k + below(bitgen.next_uint64(bitgen.state), P - k)
                may.order[i], may.order[k] = may.order[k], may.order[i]
            if not may.by_rows:
                f = may.column[may.order[k]]
                for i in range(of.n):
                    x[i * of.width + k - first] = <float> z[f, donors[members[i]]]
        for k in range(of.width // ASKED):
            look(of, k * ASKED)
        for k in range(first, last):
            i, lane = may.order[k], may.order[k] if may.by_rows else k - first
            f = may.column[i]
            may.fit[lane] = ask_once(of, lane, may.nominal[f], may.two[i], bitgen) - 1
        answer_all(of)
        for k in range(first, last):
            lane = may.order[k] if may.by_rows else k - first
            if may.fit[lane] != ALIKE:
                found = gain(of, lane)
                may.fit[lane] = found >= 0.0
                compare(best, of, found, may.column[may.order[k]], lane, bitgen)
        for k in range(first, last):
            i, lane = may.order[k], may.order[k] if may.by_rows else k - first
            if may.fit[lane] != ALIKE and may.two[i]:
                asked += may.fit[lane]
            elif may.fit[lane] != ALIKE:
                f = may.column[i]
                asked += insist(
                    best, of, f, may.nominal[f], lane, may.each, may.fit[lane], bitgen
                )


def grow(
    const double[:, ::1] z,            # in (D, N), in single precision
    const unsigned char[::1] nominal,  # in (D,) 1 = levels without an order
    int n_levels,                      # of the column, if its levels have no order, else 0
    const double[::1] y,               # in (n,) what its trees forecast
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
    const int[::1] pool,               # in (P,) columns that may be asked about
    const int[::1] unit,               # in (N,) rows of one are left out of trees together, or (0,)
):
    """Grow T trees of a column; return how many nodes and members they have.

    Nodes are visited in order, each a leaf until it is split. All columns of a node are asked
    together: donors stand by rows, one lane for each column that may be asked about. Where these
    are too many, those that a node asks about are put so. O(T tries each n log n + n P).
    """
    cdef Py_ssize_t T = root.shape[0], P = pool.shape[0], N = donors.shape[0]
    cdef Py_ssize_t t, i, k, node, start, n, left, n_nodes = 0, n_members = 0
    cdef bint alone = unit.shape[0] == 0, by_rows = P <= BY_ROWS
    cdef Py_ssize_t lanes = (max(P if by_rows else min(P, tries), 1) + ASKED - 1) // ASKED * ASKED
    cdef Best best
    cdef Node of
    cdef Pool may
    cdef float[::1] room = np.zeros(N * lanes + LINE, dtype=np.float32)
    cdef float[:, ::1] question = np.empty((4, lanes), dtype=np.float32)
    cdef double[:, ::1] told = np.empty((3, max(N, lanes, n_levels)))
    cdef int[:, ::1] codes = np.empty((2, N), dtype=np.intc), of_lanes = np.empty(
        (max(n_levels, 1) + 2, lanes), dtype=np.intc
    )
    cdef int[::1] order = np.arange(P, dtype=np.intc)
    cdef unsigned char[::1] two = np.zeros(P, dtype=np.uint8)
    cdef float* x = &room[0]
    cdef int* here
    cdef bitgen_t* bitgen = bitgen_of(rng)
    if P == 0:  # nothing to ask about, and no first column
        pool = order = np.zeros(1, dtype=np.intc)
        two = np.zeros(1, dtype=np.uint8)
    while <size_t> x % (LINE * sizeof(float)):  # a row of lanes is a line of memory
        x += 1
    of.x, of.width, of.least, of.n_levels = x, lanes, least, n_levels
    of.away, of.left, of.count, of.code = &told[0, 0], &told[1, 0], &told[2, 0], &codes[0, 0]
    of.least_of, of.greatest_of = &question[0, 0], &question[1, 0]
    of.low, of.high = &question[2, 0], &question[3, 0]
    of.n_left, of.at_level = &of_lanes[1, 0], &of_lanes[2, 0]
    may.size, may.tries, may.each, may.by_rows = P, tries, each, by_rows
    may.column, may.nominal, may.order = &pool[0], &nominal[0], &order[0]
    may.two, may.fit = &two[0], &of_lanes[0, 0]
    with rng.bit_generator.lock, nogil:
        if by_rows:
            for i in range(N):
                for k in range(P):
                    x[i * lanes + k] = <float> z[pool[k], donors[i]]
            for k in range(P):
                two[k] = has_two(&z[pool[k], 0], &donors[0], N)
        for t in range(T):
            root[t] = <int> n_nodes
            start = n_members
            for i in range(N):
                if sees(seed, donors[i] if alone else unit[donors[i]], t, T, left_out):
                    members[n_members] = <int> i
                    n_members += 1
            if n_members == start:  # few donors may all be left out
                for i in range(N):
                    members[n_members] = <int> i
                    n_members += 1
            node = n_nodes
            n_nodes += 1
            feature[node], child[node] = -1, <int> start
            threshold[node] = <float> (n_members - start)
            while node < n_nodes:
                start, n = child[node], <Py_ssize_t> threshold[node]
                here = &members[start]
                of.n, of.rows = n, here if by_rows else NULL
                best.feature, best.gain, best.ties = -1, -1.0, 0
                if n >= 2 * least and spread(&of, &y[0], here):
                    search(&best, &of, &may, z, &donors[0], here, x, bitgen)
                if best.feature >= 0:
                    left = part(&of, &best, &z[best.feature, 0], &donors[0], here, &codes[1, 0])
                    feature[node], threshold[node] = best.feature, best.high
                    child[node] = <int> n_nodes
                    for i in range(2):
                        feature[n_nodes], child[n_nodes] = -1, <int> (start + i * left)
                        threshold[n_nodes] = <float> (n - left if i else left)
                        n_nodes += 1
                node += 1
        for i in range(n_members):
            members[i] = donors[members[i]]
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
