#include "_gamma.h"

#include <math.h>
#include <string.h>

#include "_vector.h"

#define LEAST 1e-12 /* shapes and counts below are nothing */
#define LARGEST 300.0 /* exponents of rates stay within: a guard that priors keep out of reach */
#define HALF_LOG_2PI 0.91893853320467274178
#define LN2_HIGH 0.693147180369123816490
#define LN2_LOW 1.90821492927058770002e-10
#define LN2 0.6931471805599453094
#define LOG2E 1.4426950408889634
#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t bits_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

INLINE double of_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* exp(x), |x| <= 700, relative error 1e-15 */
INLINE double exp_of(double x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    double shifted = x * LOG2E + magic, k = shifted - magic, r, p;
    r = (x - k * LN2_HIGH) - k * LN2_LOW;
    p = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0);
    p = 1.0 / 39916800.0 + r * p;
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
    return p * of_bits((bits_of(shifted) + 1023) << 52);
}

/* log(x) of a normal x > 0, absolute error 2e-16 beside that of the result */
INLINE double log_of(double x)
{
    uint64_t u = bits_of(x);
    /* The exponent as a double: or-ed into the low bits of 2^52. */
    double e = of_bits((u >> 52) | 0x4330000000000000u) - 4503599627370496.0 - 1023.0;
    double m = of_bits((u & 0xfffffffffffffu) | 0x3ff0000000000000u), s, z, p;
    int high = m > 1.4142135623730951;
    m = high ? 0.5 * m : m;
    e = high ? e + 1.0 : e;
    s = (m - 1.0) / (m + 1.0);
    z = s * s; /* log m = 2 artanh s, |s| < 0.172 */
    p = 1.0 / 19.0 + z * (1.0 / 21.0);
    p = 1.0 / 17.0 + z * p;
    p = 1.0 / 15.0 + z * p;
    p = 1.0 / 13.0 + z * p;
    p = 1.0 / 11.0 + z * p;
    p = 1.0 / 9.0 + z * p;
    p = 1.0 / 7.0 + z * p;
    p = 1.0 / 5.0 + z * p;
    p = 1.0 / 3.0 + z * p;
    return e * LN2_HIGH + (2.0 * s + (2.0 * s * z * p + e * LN2_LOW));
}

/* Stirling's series of psi(x) + 1/(2x) - log x, and of logGamma, for x >= 8 */
INLINE double psi_tail(double v) /* v = 1 / x^2 */
{
    double p = 691.0 / 32760.0 - v * (1.0 / 12.0);
    p = -1.0 / 132.0 + v * p;
    p = 1.0 / 240.0 + v * p;
    p = -1.0 / 252.0 + v * p;
    p = 1.0 / 120.0 + v * p;
    p = -1.0 / 12.0 + v * p;
    return v * p;
}

INLINE double gamma_tail(double i, double v) /* i = 1 / x */
{
    double p = -691.0 / 360360.0 + v * (1.0 / 156.0);
    p = 1.0 / 1188.0 + v * p;
    p = -1.0 / 1680.0 + v * p;
    p = 1.0 / 1260.0 + v * p;
    p = -1.0 / 360.0 + v * p;
    p = 1.0 / 12.0 + v * p;
    return i * p;
}

/* sum of 1 / (x + i), i = 0..7, in two divisions: pairs i and 7 - i share x (x + 7) + i (7 - i) */
INLINE double eight_steps(double x)
{
    double t = x * (x + 7.0), a = t * (t + 6.0), b = (t + 10.0) * (t + 12.0);
    return (2.0 * x + 7.0) * ((2.0 * t + 6.0) / a + (2.0 * t + 22.0) / b);
}

INLINE double psi_of(double x)
{
    double X = x + 8.0, i = 1.0 / X;
    return log_of(X) - 0.5 * i + psi_tail(i * i) - eight_steps(x);
}

INLINE double log_gamma_of(double x)
{
    double X = x + 8.0, i = 1.0 / X, t = x * (x + 7.0);
    return (X - 0.5) * log_of(X) - X + HALF_LOG_2PI + gamma_tail(i, i * i)
           - log_of(t * (t + 6.0) * (t + 10.0) * (t + 12.0));
}

/* psi'(x) for x >= 1, good enough for a Newton step: relative error 1e-8 */
INLINE double psi_slope_of(double x)
{
    double a = 1.0 / x, b = 1.0 / (x + 1.0), c = 1.0 / (x + 2.0), d = 1.0 / (x + 3.0);
    double i = 1.0 / (x + 4.0), v = i * i;
    double p = -1.0 / 30.0 + v * (5.0 / 66.0);
    p = 1.0 / 42.0 + v * p;
    p = -1.0 / 30.0 + v * p;
    p = 1.0 / 6.0 + v * p;
    return a * a + b * b + c * c + d * d + i + 0.5 * v + i * v * p;
}

INLINE double clipped(double x)
{
    x = x > LARGEST ? LARGEST : x;
    return x < -LARGEST ? -LARGEST : x;
}

/* log(1 + exp g), accurate where it is small */
INLINE double softplus_of(double g)
{
    /* log(1 + t), t = exp(-|g|) <= 1, by 2 artanh(t / (2 + t)) where t is small */
    double t = exp_of(-(g < 0.0 ? -g : g)), s = t / (2.0 + t), z = s * s;
    double small = 2.0 * s * (1.0 + z * (1.0 / 3.0 + z * (1.0 / 5.0 + z * (1.0 / 7.0))));
    double rest = t < 0.01 ? small : log_of(1.0 + t);
    return g > 0.0 ? g + rest : rest;
}

GLFM_WIDE void glfm_log_means(int n, const double *a, const double *b, double *out)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        out[i] = psi_of(a[i] > LEAST ? a[i] : LEAST) - log_of(b[i]);
}

GLFM_WIDE double glfm_relative_exp(int n, const double *x, double *out)
{
    double top = x[0];
#pragma omp simd reduction(max : top)
    for (int i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
#pragma omp simd
    for (int i = 0; i < n; i++) {
        double d = x[i] - top, near = d < -460.0 ? -460.0 : d, e = exp_of(near);
        out[i] = d < -460.0 ? 0.0 : e;
    }
    return top;
}

GLFM_WIDE double glfm_split_counts(int64_t cells, const int *column, const int *y, int K,
                                   const double *x, const double *a, int wanted, double *ratio,
                                   double *out)
{
    int64_t e = 0;
    double total = 0.0;
    memset(out, 0, (size_t)K * sizeof *out);
    for (; e + 4 <= cells; e += 4) {
        const double *p = a + (int64_t)column[e] * K, *q = a + (int64_t)column[e + 1] * K;
        const double *r = a + (int64_t)column[e + 2] * K, *s = a + (int64_t)column[e + 3] * K;
        double dp = 0.0, dq = 0.0, dr = 0.0, ds = 0.0;
#pragma omp simd reduction(+ : dp, dq, dr, ds)
        for (int k = 0; k < K; k++) {
            dp += x[k] * p[k];
            dq += x[k] * q[k];
            dr += x[k] * r[k];
            ds += x[k] * s[k];
        }
        ratio[e] = dp = y[e] / dp;
        ratio[e + 1] = dq = y[e + 1] / dq;
        ratio[e + 2] = dr = y[e + 2] / dr;
        ratio[e + 3] = ds = y[e + 3] / ds;
#pragma omp simd
        for (int k = 0; k < K; k++)
            out[k] += (dp * p[k] + dq * q[k]) + (dr * r[k] + ds * s[k]);
    }
    for (; e < cells; e++) {
        const double *p = a + (int64_t)column[e] * K;
        double d = 0.0;
#pragma omp simd reduction(+ : d)
        for (int k = 0; k < K; k++)
            d += x[k] * p[k];
        ratio[e] = d = y[e] / d;
#pragma omp simd
        for (int k = 0; k < K; k++)
            out[k] += d * p[k];
    }
#pragma omp simd
    for (int k = 0; k < K; k++)
        out[k] *= x[k];
    if (wanted) {
#pragma omp simd reduction(+ : total)
        for (e = 0; e < cells; e++)
            total += y[e] * log_of(y[e] / ratio[e]);
    }
    return total;
}

GLFM_WIDE void glfm_leave_out(int64_t cells, const int *column, const int *y, int K, int T,
                              const double *x, const double *n, const double *w, const double *a,
                              const double *A, double least, int16_t *top, float *own,
                              int16_t *was, float *change, double *ratio, double *out)
{
    memset(out, 0, (size_t)K * sizeof *out);
    for (int64_t e = 0; e < cells; e++) {
        const double *p = a + (int64_t)column[e] * K;
        int t = top[e], best = t;
        double at_row = w[t] + n[t], at_column = A[(int64_t)column[e] * T + t], o = own[e];
        double whole = x[t] * p[t], left = whole, d = 0.0, most;
        left *= fmax(at_row - o, w[t]) / at_row * (fmax(at_column - o, least) / at_column);
#pragma omp simd reduction(+ : d)
        for (int k = 0; k < K; k++)
            d += x[k] * p[k];
        ratio[e] = d = y[e] / (fmax(d - whole, 0.0) + left);
#pragma omp simd
        for (int k = 0; k < K; k++)
            out[k] += d * p[k];
        was[e] = (int16_t)t;
        change[e] = (float)(d * (left - whole));
        if (x[t] > 0.0)
            out[t] += d * (left - whole) / x[t];
        most = left;
        for (int k = 0; k < T; k++) {
            if (x[k] * p[k] > most && k != t) {
                most = x[k] * p[k];
                best = k;
            }
        }
        top[e] = (int16_t)best;
        own[e] = (float)(d * most);
    }
#pragma omp simd
    for (int k = 0; k < K; k++)
        out[k] = fmax(out[k] * x[k], 0.0); /* differences of large numbers may end below */
}

GLFM_WIDE void glfm_gather_counts(int64_t cells, const int *row, const int *cell, int K,
                                  const double *ratio, const double *x, double *out)
{
    int64_t e = 0;
    memset(out, 0, (size_t)K * sizeof *out);
    for (; e + 4 <= cells; e += 4) {
        const double *p = x + (int64_t)row[e] * K, *q = x + (int64_t)row[e + 1] * K;
        const double *r = x + (int64_t)row[e + 2] * K, *s = x + (int64_t)row[e + 3] * K;
        double dp = ratio[cell[e]], dq = ratio[cell[e + 1]];
        double dr = ratio[cell[e + 2]], ds = ratio[cell[e + 3]];
#pragma omp simd
        for (int k = 0; k < K; k++)
            out[k] += (dp * p[k] + dq * q[k]) + (dr * r[k] + ds * s[k]);
    }
    for (; e < cells; e++) {
        const double *p = x + (int64_t)row[e] * K;
        double d = ratio[cell[e]];
#pragma omp simd
        for (int k = 0; k < K; k++)
            out[k] += d * p[k];
    }
}

GLFM_WIDE void glfm_combine_rows(int J, int K, const double *c, const double *M, double *out)
{
    int j = 0;
    memset(out, 0, (size_t)K * sizeof *out);
    for (; j + 4 <= J; j += 4) {
        const double *p = M + (int64_t)j * K, *q = p + K, *r = q + K, *s = r + K;
        double a = c[j], b = c[j + 1], d = c[j + 2], e = c[j + 3];
#pragma omp simd
        for (int k = 0; k < K; k++)
            out[k] += (a * p[k] + b * q[k]) + (d * r[k] + e * s[k]);
    }
    for (; j < J; j++) {
        const double *p = M + (int64_t)j * K;
        double a = c[j];
#pragma omp simd
        for (int k = 0; k < K; k++)
            out[k] += a * p[k];
    }
}

GLFM_WIDE void glfm_dot_rows(int J, int K, const double *M, const double *q, double *out)
{
    int j = 0;
    for (; j + 4 <= J; j += 4) {
        const double *p = M + (int64_t)j * K;
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
#pragma omp simd reduction(+ : a, b, c, d)
        for (int k = 0; k < K; k++) {
            a += p[k] * q[k];
            b += p[K + k] * q[k];
            c += p[2 * K + k] * q[k];
            d += p[3 * K + k] * q[k];
        }
        out[j] = a;
        out[j + 1] = b;
        out[j + 2] = c;
        out[j + 3] = d;
    }
    for (; j < J; j++) {
        const double *p = M + (int64_t)j * K;
        double a = 0.0;
#pragma omp simd reduction(+ : a)
        for (int k = 0; k < K; k++)
            a += p[k] * q[k];
        out[j] = a;
    }
}

GLFM_WIDE void glfm_exp_moments(int K, const double *mean, const double *var, double *log_r,
                                double *rho)
{
#pragma omp simd
    for (int k = 0; k < K; k++) {
        log_r[k] = -mean[k];
        rho[k] = exp_of(clipped(0.5 * var[k] - mean[k]));
    }
}

GLFM_WIDE void glfm_softplus_moments(int K, int Q, const double *node, const double *weight,
                                     const double *mean, const double *var, double *log_r,
                                     double *rho)
{
    memset(log_r, 0, (size_t)K * sizeof *log_r);
    memset(rho, 0, (size_t)K * sizeof *rho);
    for (int j = 0; j < Q; j++) {
        double t = node[j], a = weight[j];
#pragma omp simd
        for (int k = 0; k < K; k++) {
            double s = softplus_of(clipped(mean[k] + t * __builtin_sqrt(var[k])));
            log_r[k] -= a * log_of(s);
            rho[k] += a / s;
        }
    }
}

GLFM_WIDE void glfm_softplus_partials(int K, int Q, const double *node, const double *weight,
                                      const double *mean, const double *var, double *log_m,
                                      double *log_v, double *rho_m, double *rho_v)
{
    memset(log_m, 0, (size_t)K * sizeof *log_m);
    memset(log_v, 0, (size_t)K * sizeof *log_v);
    memset(rho_m, 0, (size_t)K * sizeof *rho_m);
    memset(rho_v, 0, (size_t)K * sizeof *rho_v);
    for (int j = 0; j < Q; j++) {
        double t = node[j], a = weight[j];
#pragma omp simd
        for (int k = 0; k < K; k++) {
            double g = clipped(mean[k] + t * __builtin_sqrt(var[k])), i = 1.0 / softplus_of(g);
            double e = exp_of(-(g < 0.0 ? -g : g));
            double up = g < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e); /* sigmoid(g) */
            double h = up * i, slope = h * ((1.0 - up) - h);
            log_m[k] -= a * h;
            log_v[k] -= 0.5 * a * slope;
            rho_m[k] -= a * h * i;
            rho_v[k] += 0.5 * a * i * (h * h - slope);
        }
    }
}

GLFM_WIDE double glfm_rate_objective(int K, const double *w, const double *n, const double *log_r,
                                     const double *rho, const double *S)
{
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (int k = 0; k < K; k++)
        total += w[k] * log_r[k] - (w[k] + n[k]) * log_of(rho[k] + S[k]);
    return total;
}

/* The differences start from 1 + w: that of a small w from itself would cancel. */
INLINE double log_gamma_step(double w, double n)
{
    return log_of(w / (w + n)) + log_gamma_of(1.0 + w + n) - log_gamma_of(1.0 + w);
}

GLFM_WIDE double glfm_log_gamma_rise(int K, const double *w, const double *n)
{
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (int k = 0; k < K; k++) {
        double u = w[k] > LEAST ? w[k] : LEAST, rise = log_gamma_step(u, n[k]);
        total += n[k] < LEAST ? 0.0 : rise;
    }
    return total;
}

GLFM_WIDE void glfm_add_rises(int K, const double *w, const double *n, double *f, double *first,
                              double *second)
{
#pragma omp simd
    for (int k = 0; k < K; k++) {
        double u = w[k] > LEAST ? w[k] : LEAST, a = u / (u + n[k]);
        double rise = log_gamma_step(u, n[k]);
        double psi = u * (psi_of(1.0 + u + n[k]) - psi_of(1.0 + u)) + (1.0 - a);
        double slope = u * u * (psi_slope_of(1.0 + u + n[k]) - psi_slope_of(1.0 + u)) + a * a - 1.0;
        int none = n[k] < LEAST;
        f[k] += none ? 0.0 : rise;
        first[k] += none ? 0.0 : psi;
        second[k] += none ? 0.0 : slope;
    }
}

GLFM_WIDE void glfm_add_rates(int K, const double *w, const double *n, const double *rho,
                              const double *S, double *log_sum, double *mean_sum)
{
#pragma omp simd
    for (int k = 0; k < K; k++) {
        double b = rho[k] + S[k];
        log_sum[k] += log_of(b);
        mean_sum[k] += (w[k] + n[k]) / b;
    }
}

GLFM_WIDE void glfm_add_gradient(int D, int K, const double *p, const double *q, const double *m,
                                 const double *SL, double *gradient)
{
    for (int j = 0; j < D; j++) {
        const double *s = SL + (int64_t)j * K;
        double *g = gradient + (int64_t)j * K, at = m[j];
#pragma omp simd
        for (int k = 0; k < K; k++)
            g[k] += p[k] * at + q[k] * s[k];
    }
}

GLFM_WIDE void glfm_add_outer(int D, int K, const double *c, const double *E, const double *cov,
                              double *H)
{
    int pair = 0;
    for (int i = 0; i < D; i++)
        for (int j = 0; j <= i; j++, pair++) {
            const double *a = E + (int64_t)i * K, *b = E + (int64_t)j * K;
            double *h = H + (int64_t)pair * K, v = cov[pair];
#pragma omp simd
            for (int k = 0; k < K; k++)
                h[k] += c[k] * (a[k] * b[k] + v);
        }
}
