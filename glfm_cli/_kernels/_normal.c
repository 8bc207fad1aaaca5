#include "_normal.h"

#include <math.h>
#include <stdint.h>

#include "_vector.h"

#define BLOCK 512      /* mantissas below 2 whose product cannot overflow */
#define MOST_PASSES 60
#define FARTHEST 12.0  /* from here on a tail is nothing beside one within GLFM_FAR */
#define LOG2E 1.4426950408889634
#define LN2_HIGH 0.693147180369123816490
#define LN2_LOW 1.90821492927058770002e-10
#define INV_SQRT_2PI 0.3989422804014327
#define INV_PI2 0.10132118364233778 /* 1 / pi^2 */
#define POINT_WIDTH 1e-3 /* as narrow as this: a point, unless far out */
#define POINT_REACH 0.05 /* width times distance from eta: error of log p below 1e-8 */
#define LN2 0.6931471805599453

/* exp(x) for -700 < x <= 0, relative error 1e-12 */
static inline double exp_near(double x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    union {
        double d;
        uint64_t i;
    } shifted, power;
    double n, r, p;
    shifted.d = x * LOG2E + magic;
    n = shifted.d - magic;
    r = (x - n * LN2_HIGH) - n * LN2_LOW;
    p = 1.0 / 39916800.0;
    p = 1.0 / 3628800.0 + r * p;
    p = 1.0 / 362880.0 + r * p;
    p = 1.0 / 40320.0 + r * p;
    p = 1.0 / 5040.0 + r * p;
    p = 1.0 / 720.0 + r * p;
    p = 1.0 / 120.0 + r * p;
    p = 1.0 / 24.0 + r * p;
    p = 1.0 / 6.0 + r * p;
    p = 0.5 + r * p;
    p = 1.0 + r * p;
    p = 1.0 + r * p;
    power.i = (shifted.i << 52) + ((uint64_t)1023 << 52); /* 2^n */
    return p * power.d;
}

static inline double density(double z)
{
    return INV_SQRT_2PI * exp_near(-0.5 * z * z);
}

/* Phi(-z) / phi(z), 0 <= z <= FARTHEST: relative error 5e-12. A Chebyshev interpolant in
   1 / (z + 5.5), in which Mills' ratio is nearly a polynomial. */
static inline double mills(double z)
{
    double u = 1.0 / (z + 5.5), x = 16.041666666666664 * u - 1.9166666666666665;
    double p = 1.0992083068809884e-06;
    p = 2.5899853157842864e-06 + x * p;
    p = -2.0936402741688666e-05 + x * p;
    p = -0.00012478001251794193 + x * p;
    p = -5.137749397309292e-07 + x * p;
    p = 0.0031676036609559347 + x * p;
    p = 0.021117184027688706 + x * p;
    p = 0.08636476637582186 + x * p;
    p = 0.262523282615619 + x * p;
    p = 0.6323731030607157 + x * p;
    p = 1.2403964133211582 + x * p;
    p = 2.0006255876671277 + x * p;
    p = 2.6468023555229045 + x * p;
    return u * p;
}

/* log x for 1e-300 < x < 1e300, relative error 1e-12 */
static inline double log_near(double x)
{
    const uint64_t root_half = 0x3fe6a09e667f3bcdu, bias = (uint64_t)1024 << 52;
    union {
        double d;
        uint64_t i;
    } bits, count;
    uint64_t e;
    double z, z2, p;
    bits.d = x;
    e = (bits.i - root_half + bias) >> 52; /* 1024 more than the power of 2 below x sqrt 2 */
    bits.i -= (e << 52) - bias;            /* from 1 / sqrt 2 to sqrt 2 */
    count.i = e | 0x4330000000000000u;     /* 2^52 + e */
    z = (bits.d - 1.0) / (bits.d + 1.0);
    z2 = z * z;
    p = 1.0 / 13.0;
    p = 1.0 / 11.0 + z2 * p;
    p = 1.0 / 9.0 + z2 * p;
    p = 1.0 / 7.0 + z2 * p;
    p = 1.0 / 5.0 + z2 * p;
    p = 1.0 / 3.0 + z2 * p;
    p = 1.0 + z2 * p;
    return (count.d - 4503599627371520.0) * LN2 + 2.0 * z * p;
}

GLFM_WIDE void glfm_log_odds(int n, double *u)
{
    n &= -GLFM_LANES;
#pragma omp simd
    for (int i = 0; i < n; i++)
        u[i] = log_near(u[i] / (1.0 - u[i]));
}

/* The x >= 0 with Phi(-x) = p, 1e-32 < p <= 1/2: absolute error 2e-11. With t = sqrt(-2 log p) a
   Chebyshev interpolant of t - x in 1 / (t + 3). */
static inline double upper_quantile(double p)
{
    double t = sqrt(-2.0 * log_near(p));
    double x = 11.506883750396694 / (t + 3.0) - 1.7545497541243733;
    double c = 4.787237798268134e-07;
    c = 2.1348214290841074e-06 + x * c;
    c = 6.1208568846719e-07 + x * c;
    c = 1.0588200986593114e-06 + x * c;
    c = 6.709459504173661e-06 + x * c;
    c = 2.254020722337357e-05 + x * c;
    c = 3.373170664842106e-05 + x * c;
    c = 0.00010318489551243539 + x * c;
    c = 0.00019393923300938323 + x * c;
    c = 0.0005970921512304416 + x * c;
    c = 0.0011778473260190786 + x * c;
    c = 0.0037361651240207065 + x * c;
    c = 0.008052465507840011 + x * c;
    c = 0.029984431055993688 + x * c;
    c = 0.07626686416451031 + x * c;
    c = 0.4135363660722373 + x * c;
    c = 0.643694401150107 + x * c;
    return t - c;
}

static inline double distance(double x)
{
    x = x < 0.0 ? -x : x;
    return x < FARTHEST ? x : FARTHEST;
}

/* Phi(-x); of x > FARTHEST that of FARTHEST */
static inline double upper_tail(double x)
{
    double z = distance(x), tail = density(z) * mills(z);
    return x > 0.0 ? tail : 1.0 - tail;
}

GLFM_WIDE void glfm_sum_steps(int n, const double *at, const double *first, const double *second,
                              double eta, double inv, double end, double *out)
{
    /* Partial sums in as many lanes whatever the width of the machine's vectors. */
    double one[GLFM_LANES] = {0.0}, two[GLFM_LANES] = {0.0}, p[BLOCK];
    double beyond = upper_tail((end - eta) * inv);
    for (int start = 0; start < n; start += BLOCK) {
        int size = n - start < BLOCK ? n - start : BLOCK;
#pragma omp simd
        for (int i = 0; i < size; i++)
            p[i] = upper_tail((at[start + i] - eta) * inv) - beyond;
        const double *v = first + start, *w = second + start;
        for (int i = 0; i < size; i += GLFM_LANES) {
            int lanes = size - i < GLFM_LANES ? size - i : GLFM_LANES;
#pragma omp simd
            for (int l = 0; l < lanes; l++) {
                one[l] += v[i + l] * p[i + l];
                two[l] += w[i + l] * p[i + l];
            }
        }
    }
    out[0] = out[1] = 0.0;
    for (int l = 0; l < GLFM_LANES; l++) {
        out[0] += one[l];
        out[1] += two[l];
    }
}

GLFM_WIDE double glfm_mixture_cdf(int n, const double *mean, const double *sd, const double *weight,
                                  double y, double *slope)
{
    /* Partial sums in as many lanes whatever the width of the machine's vectors. */
    double below[GLFM_LANES] = {0.0}, steep[GLFM_LANES] = {0.0}, p[BLOCK], g[BLOCK];
    for (int start = 0; start < n; start += BLOCK) {
        int size = n - start < BLOCK ? n - start : BLOCK, whole = size & -GLFM_LANES;
        const double *m = mean + start, *s = sd + start, *w = weight + start;
#pragma omp simd
        for (int i = 0; i < size; i++) {
            double inv = 1.0 / s[i], u = (y - m[i]) * inv, z = distance(u);
            double d = density(z), tail = d * mills(z);
            p[i] = w[i] * (u < 0.0 ? tail : 1.0 - tail);
            g[i] = w[i] * d * inv;
        }
        for (int i = 0; i < whole; i += GLFM_LANES)
#pragma omp simd
            for (int l = 0; l < GLFM_LANES; l++) {
                below[l] += p[i + l];
                steep[l] += g[i + l];
            }
        for (int i = whole; i < size; i++) {
            below[i - whole] += p[i];
            steep[i - whole] += g[i];
        }
    }
    double total = 0.0;
    *slope = 0.0;
    for (int l = 0; l < GLFM_LANES; l++) {
        total += below[l];
        *slope += steep[l];
    }
    return total;
}

/* Splits a positive p into mantissa, in [1, 2), and exponent + 1023. */
static inline double split(double p, int64_t *exponent)
{
    union {
        double d;
        uint64_t i;
    } bits;
    bits.d = p;
    *exponent = (int64_t)(bits.i >> 52);
    bits.i = (bits.i & 0xfffffffffffffu) | ((uint64_t)1023 << 52);
    return bits.d;
}

GLFM_WIDE double glfm_look(int n_sides, const double *restrict t, const double *restrict slope,
                           const double *restrict reach, double *restrict g, double *restrict c,
                           int n_bands, const double *restrict a, const double *restrict b,
                           const double *restrict inv, double *restrict band_g, int *restrict far)
{
    /* The product of p in each lane, in [1, 2) times a power of 2: whatever the width of the machine's
       vectors, all is done in the same order. */
    double product[GLFM_LANES], lowest[GLFM_LANES];
    int64_t exponent[GLFM_LANES];
    for (int l = 0; l < GLFM_LANES; l++) {
        product[l] = 1.0;
        lowest[l] = 0.0;
        exponent[l] = 0;
    }
    for (; n_sides >= GLFM_LANES; n_sides -= GLFM_LANES) {
#pragma omp simd
        for (int l = 0; l < GLFM_LANES; l++) {
            int64_t e;
            double x = t[l], s = slope[l], z = distance(x), y = x + reach[l];
            double ratio = mills(z), phi = density(z), tail = phi * ratio, curvature, flat;
            double p = x < 0.0 ? tail : 1.0 - tail;
            lowest[l] = x < lowest[l] ? x : lowest[l];
            product[l] = split(product[l] * p, &e);
            exponent[l] += e - 1023;
            g[l] = s * (x < 0.0 ? 1.0 : phi) / (x < 0.0 ? ratio : p);
            /* The curvature of log Phi falls from 1 to 0 as t grows; these lines lie below it. */
            curvature = 0.635 - 0.28 * y;
            flat = 0.635 - 0.09 * y;
            curvature = curvature < flat ? curvature : flat;
            curvature = curvature < 0.9 ? curvature : 0.9;
            c[l] = s * s * (curvature > 0.0 ? curvature : 0.0);
        }
        t += GLFM_LANES, slope += GLFM_LANES, reach += GLFM_LANES, g += GLFM_LANES, c += GLFM_LANES;
    }
    for (; n_bands >= GLFM_LANES; n_bands -= GLFM_LANES) {
#pragma omp simd
        for (int l = 0; l < GLFM_LANES; l++) {
            int64_t e;
            int flip = a[l] > 0.0; /* subtract in the lower tail */
            double x = flip ? -b[l] : a[l], y = flip ? -a[l] : b[l];
            double zx = distance(x), zy = distance(y), phix = density(zx), phiy = density(zy);
            double tail = phiy * mills(zy);
            double p = (y < 0.0 ? tail : 1.0 - tail) - phix * mills(zx);
            lowest[l] = y < lowest[l] ? y : lowest[l];
            product[l] = split(product[l] * p, &e);
            exponent[l] += e - 1023;
            band_g[l] = (flip ? -inv[l] : inv[l]) * (phix - phiy) / p;
        }
        a += GLFM_LANES, b += GLFM_LANES, inv += GLFM_LANES, band_g += GLFM_LANES;
    }
    for (int half = GLFM_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) {
            product[l] *= product[l + half];
            exponent[l] += exponent[l + half];
            lowest[l] = lowest[l + half] < lowest[l] ? lowest[l + half] : lowest[l];
        }
    *far = lowest[0] < GLFM_FAR;
    return log(product[0]) + LN2 * (double)exponent[0];
}

GLFM_WIDE double glfm_log_intervals(int n, const double *a, const double *b, int *far)
{
    double total = 0.0;
    int bad = 0;
    n &= -GLFM_LANES;
    for (int start = 0; start < n; start += BLOCK) {
        int m = n - start < BLOCK ? n - start : BLOCK;
        int64_t exponents = -1023 * (int64_t)m;
        double product = 1.0;
#pragma omp simd reduction(* : product) reduction(+ : exponents) reduction(| : bad)
        for (int j = 0; j < m; j++) {
            int i = start + j;
            int64_t e;
            int flip = a[i] > 0.0;
            double x = flip ? -b[i] : a[i], y = flip ? -a[i] : b[i];
            double zx = distance(x), zy = distance(y), tail = density(zy) * mills(zy);
            double p = (y < 0.0 ? tail : 1.0 - tail) - density(zx) * mills(zx);
            bad |= (y < GLFM_FAR) | (y - x < GLFM_NARROW);
            product *= split(p, &e);
            exponents += e;
        }
        total += log(product) + LN2 * (double)exponents;
    }
    *far |= bad;
    return total;
}

GLFM_WIDE void glfm_place_cells(int n, const double *y, const double *lower, const double *upper,
                                const double *eta, const double *known, const double *seen,
                                const double *inv_sd, const double *inv, double *g, double *c,
                                double *low, double *high, double *t, double *dt, double *curve,
                                double *kind)
{
#pragma omp simd
    for (int i = 0; i < n; i++) {
        double from = known[i] > 0.0 ? y[i] : lower[i], to = known[i] > 0.0 ? y[i] : upper[i];
        double a = (from - eta[i]) * inv[i], b = (to - eta[i]) * inv[i];
        double width = b - a, mid = 0.5 * (a + b), away = mid < 0.0 ? -mid : mid;
        double less = inv[i] * (1.0 - width * width * (1.0 / 12.0));
        double flat = 1.0 - width * width * INV_PI2;
        int here = seen[i] > 0.0, point = from == to;
        int narrow = (width < POINT_WIDTH) & (width * (away + 20.0) < POINT_REACH);
        int from_low = a > -INFINITY, from_high = b < INFINITY;
        double gi = point ? (from - eta[i]) * (inv_sd[i] * inv_sd[i]) : narrow ? mid * less : 0.0;
        double ci = point ? inv_sd[i] * inv_sd[i] : narrow ? inv[i] * less : 0.0;
        double k = from_low & from_high ? GLFM_BAND : from_low | from_high ? GLFM_SIDE : GLFM_SETTLED;
        g[i] = here ? gi : 0.0;
        c[i] = here ? ci : 0.0;
        low[i] = a;
        high[i] = b;
        t[i] = from_low ? -a : b;
        dt[i] = from_low ? inv[i] : -inv[i];
        curve[i] = inv[i] * inv[i] * (flat > 0.0 ? flat : 0.0);
        kind[i] = (!here) | point | narrow ? GLFM_SETTLED : k;
    }
}

GLFM_WIDE void glfm_between(int n, const double *a, const double *b, const double *u, double *x)
{
    n &= -GLFM_LANES;
#pragma omp simd
    for (int i = 0; i < n; i++) {
        int flip = a[i] > 0.0, above; /* subtract in the lower tail */
        double low = flip ? -b[i] : a[i], high = flip ? -a[i] : b[i], z;
        double zx = distance(low), zy = distance(high), tail = density(zy) * mills(zy);
        double p = density(zx) * mills(zx), q = high < 0.0 ? tail : 1.0 - tail;
        p += (flip ? 1.0 - u[i] : u[i]) * (q - p);
        above = p > 0.5;
        z = upper_quantile(above ? 1.0 - p : p);
        z = above == flip ? -z : z;
        z = z < a[i] ? a[i] : z;
        z = z > b[i] ? b[i] : z;
        x[i] = ((high >= GLFM_OUTER) & (high - low >= GLFM_SLIM)) ? z : NAN;
    }
}

GLFM_WIDE void glfm_normals(int n, const uint64_t *words, double *x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    const uint64_t one = (uint64_t)1023 << 52;
    double *rest = x + n;
    n &= -GLFM_LANES;
#pragma omp simd
    for (int i = 0; i < n; i++) {
        union {
            double d;
            uint64_t i;
        } u, v, turn, c, s, first, second;
        double radius, f, f2;
        uint64_t swap, sign;
        u.i = words[i] >> 24 << 12 | one;       /* 1 <= u, v < 2 */
        v.i = (words[i] & 0xffffff) << 28 | one;
        radius = sqrt(-2.0 * log_near(2.0 - u.d));
        /* An angle within pi / 4 of none; which quarter it is in decides which of its sine and cosine
           comes first, and the signs. */
        v.d = 4.0 * v.d - 4.0;
        turn.d = v.d + magic;
        f = (v.d - (turn.d - magic)) * 1.5707963267948966;
        f2 = f * f;
        s.d = -1.0 / 39916800.0;
        s.d = 1.0 / 362880.0 + f2 * s.d;
        s.d = -1.0 / 5040.0 + f2 * s.d;
        s.d = 1.0 / 120.0 + f2 * s.d;
        s.d = -1.0 / 6.0 + f2 * s.d;
        s.d = f + f * f2 * s.d;
        c.d = 1.0 / 479001600.0;
        c.d = -1.0 / 3628800.0 + f2 * c.d;
        c.d = 1.0 / 40320.0 + f2 * c.d;
        c.d = -1.0 / 720.0 + f2 * c.d;
        c.d = 1.0 / 24.0 + f2 * c.d;
        c.d = -0.5 + f2 * c.d;
        c.d = 1.0 + f2 * c.d;
        swap = -(turn.i & 1);
        sign = (turn.i & 2) << 62;
        first.i = ((s.i & swap) | (c.i & ~swap)) ^ sign;
        second.i = ((c.i & swap) | (s.i & ~swap)) ^ sign;
        x[i] = radius * first.d;
        rest[i] = radius * second.d;
    }
}

/* The product over the other levels is the product before times the product after: no division. */
GLFM_WIDE void glfm_level_probabilities(int R, int n_nodes, const double *low, const double *step,
                                        const double *e, const double *inv, double *cdf, double *pdf,
                                        double *out)
{
    double product[GLFM_CELLS], t[GLFM_CELLS];
    memset(out, 0, (size_t)R * GLFM_CELLS * sizeof *out);
    for (int node = 0; node < n_nodes; node++) {
        for (int i = 0; i < GLFM_CELLS; i++) {
            t[i] = low[i] + node * step[i];
            product[i] = 1.0;
        }
        for (int r = 0; r < R; r++) {
            const double *mean = e + (size_t)r * GLFM_CELLS, *scale = inv + (size_t)r * GLFM_CELLS;
            double *p = cdf + (size_t)r * GLFM_CELLS, *d = pdf + (size_t)r * GLFM_CELLS;
#pragma omp simd
            for (int i = 0; i < GLFM_CELLS; i++) {
                double x = (t[i] - mean[i]) * scale[i], z = distance(x), phi = density(z);
                double tail = phi * mills(z);
                p[i] = x < 0.0 ? tail : 1.0 - tail;
                d[i] = phi * scale[i] * product[i];
                product[i] *= p[i];
            }
        }
        for (int i = 0; i < GLFM_CELLS; i++)
            product[i] = 1.0;
        for (int r = R - 1; r >= 0; r--) {
            const double *p = cdf + (size_t)r * GLFM_CELLS, *d = pdf + (size_t)r * GLFM_CELLS;
            double *to = out + (size_t)r * GLFM_CELLS;
#pragma omp simd
            for (int i = 0; i < GLFM_CELLS; i++) {
                to[i] += d[i] * product[i];
                product[i] *= p[i];
            }
        }
    }
    for (int i = 0; i < GLFM_CELLS; i++)
        product[i] = 0.0;
    for (int r = 0; r < R; r++)
        for (int i = 0; i < GLFM_CELLS; i++)
            product[i] += out[(size_t)r * GLFM_CELLS + i];
    for (int r = 0; r < R; r++)
        for (int i = 0; i < GLFM_CELLS; i++)
            out[(size_t)r * GLFM_CELLS + i] /= product[i];
}

GLFM_WIDE double glfm_below_largest(int R, int T, const double *e, double t, double scale, const double *node,
                                    const double *weight, double *ratio, double *below)
{
    double value[GLFM_CELLS], total = 0.0;
#pragma omp simd
    for (int k = 0; k < GLFM_CELLS; k++) {
        double x = scale * node[k];
        value[k] = weight[k] * exp_near(-x * (t - e[T] + 0.5 * x));
    }
    for (int j = 0; j < R; j++) {
        double *to = ratio + (size_t)j * GLFM_CELLS;
        if (j == T)
            continue;
#pragma omp simd
        for (int k = 0; k < GLFM_CELLS; k++) {
            double x = t + scale * node[k] - e[j], z = distance(x), phi = density(z), m = mills(z);
            double p = x < 0.0 ? phi * m : 1.0 - phi * m;
            to[k] = phi / p;
            value[k] *= p;
        }
    }
    for (int k = 0; k < GLFM_CELLS; k++)
        total += value[k];
    for (int j = 0; j < R; j++) {
        below[j] = 0.0;
        for (int k = 0; k < GLFM_CELLS && j != T; k++)
            below[j] += value[k] * ratio[(size_t)j * GLFM_CELLS + k];
    }
    return total;
}

GLFM_WIDE void glfm_modes(int R, const double *e, const double *winner, double tolerance, double *t,
                          double *curvature)
{
    double own[GLFM_CELLS], slope[GLFM_CELLS], largest = INFINITY;
    for (int i = 0; i < GLFM_CELLS; i++) {
        own[i] = e[(size_t)winner[i] * GLFM_CELLS + i];
        t[i] = own[i];
    }
    for (int j = 0; j < R; j++)
        for (int i = 0; i < GLFM_CELLS; i++)
            t[i] = t[i] > e[(size_t)j * GLFM_CELLS + i] ? t[i] : e[(size_t)j * GLFM_CELLS + i];
    for (int pass = 0; pass < MOST_PASSES && largest >= tolerance; pass++) {
        for (int i = 0; i < GLFM_CELLS; i++)
            slope[i] = curvature[i] = 0.0;
        for (int j = 0; j < R; j++) {
            const double *mean = e + (size_t)j * GLFM_CELLS;
#pragma omp simd
            for (int i = 0; i < GLFM_CELLS; i++) {
                double x = t[i] - mean[i], z = distance(x), phi = density(z), m = mills(z);
                double p = x < 0.0 ? phi * m : 1.0 - phi * m, beaten = winner[i] == (double)j ? 0.0 : 1.0;
                double pull = x < -FARTHEST ? -x - 1.0 / x : phi / p, bend = pull * (x + pull);
                bend = bend > 0.0 ? bend : 0.0;
                bend = bend < 1.0 ? bend : 1.0;
                slope[i] += beaten * pull;
                curvature[i] += beaten * bend;
            }
        }
        largest = 0.0;
        for (int i = 0; i < GLFM_CELLS; i++) {
            double gap = slope[i] - (t[i] - own[i]), size = gap < 0.0 ? -gap : gap;
            largest = size > largest ? size : largest;
            if (size >= tolerance)
                t[i] += gap / (1.0 + curvature[i]);
        }
    }
}
