#include "_normal.h"

#include <math.h>
#include <stdint.h>

#include "_vector.h"

#define BLOCK 512      /* mantissas below 2 whose product cannot overflow */
#define FARTHEST 12.0  /* from here on a tail is nothing beside one within GLFM_FAR */
#define LOG2E 1.4426950408889634
#define LN2_HIGH 0.693147180369123816490
#define LN2_LOW 1.90821492927058770002e-10
#define INV_SQRT_2PI 0.3989422804014327
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

static inline double distance(double x)
{
    x = x < 0.0 ? -x : x;
    return x < FARTHEST ? x : FARTHEST;
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

GLFM_WIDE double glfm_one_sided(int n, const double *t, const double *slope, const double *reach,
                                double *g, double *c, int *far)
{
    double total = 0.0, lowest = 0.0;
    n &= -GLFM_LANES;
    for (int start = 0; start < n; start += BLOCK) {
        int m = n - start < BLOCK ? n - start : BLOCK;
        int64_t exponents = -1023 * (int64_t)m;
        double product = 1.0;
#pragma omp simd reduction(* : product) reduction(+ : exponents) reduction(min : lowest)
        for (int j = 0; j < m; j++) {
            int i = start + j;
            int64_t e;
            double x = t[i], s = slope[i], z = distance(x), y = x + reach[i];
            double ratio = mills(z), phi = density(z), tail = phi * ratio, bend, flat;
            double p = x < 0.0 ? tail : 1.0 - tail;
            lowest = x < lowest ? x : lowest;
            product *= split(p, &e);
            exponents += e;
            g[i] = s * (x < 0.0 ? 1.0 : phi) / (x < 0.0 ? ratio : p);
            /* The bend of log Phi falls from 1 to 0 as t grows; these lines lie below it. */
            bend = 0.635 - 0.28 * y;
            flat = 0.635 - 0.09 * y;
            bend = bend < flat ? bend : flat;
            bend = bend < 0.9 ? bend : 0.9;
            c[i] = s * s * (bend > 0.0 ? bend : 0.0);
        }
        total += log(product) + LN2 * (double)exponents;
    }
    *far |= lowest < GLFM_FAR;
    return total;
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

GLFM_WIDE double glfm_two_sided(int n, const double *a, const double *b, const double *inv,
                                double *g, int *far)
{
    double total = 0.0, lowest = 0.0;
    n &= -GLFM_LANES;
    for (int start = 0; start < n; start += BLOCK) {
        int m = n - start < BLOCK ? n - start : BLOCK;
        int64_t exponents = -1023 * (int64_t)m;
        double product = 1.0;
#pragma omp simd reduction(* : product) reduction(+ : exponents) reduction(min : lowest)
        for (int j = 0; j < m; j++) {
            int i = start + j;
            int64_t e;
            int flip = a[i] > 0.0; /* subtract in the lower tail */
            double x = flip ? -b[i] : a[i], y = flip ? -a[i] : b[i];
            double zx = distance(x), zy = distance(y), phix = density(zx), phiy = density(zy);
            double tail = phiy * mills(zy);
            double p = (y < 0.0 ? tail : 1.0 - tail) - phix * mills(zx);
            lowest = y < lowest ? y : lowest;
            product *= split(p, &e);
            exponents += e;
            g[i] = (flip ? -inv[i] : inv[i]) * (phix - phiy) / p;
        }
        total += log(product) + LN2 * (double)exponents;
    }
    *far |= lowest < GLFM_FAR;
    return total;
}
