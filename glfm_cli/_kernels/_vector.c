#include "_vector.h"

#include <math.h>

/* Before a loop: sums in any order, one partial sum a lane. GCC adds these up faster when it is told
   so by an option. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("associative-math", "no-signed-zeros", "no-trapping-math")
#define SUM(...)
#else
#define PRAGMA(text) _Pragma(#text)
#define SUM(...) PRAGMA(omp simd reduction(+ : __VA_ARGS__))
#endif

GLFM_WIDE void glfm_axpy(int n, double a, const double *x, double *y)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        y[i] += a * x[i];
}

GLFM_WIDE void glfm_masked_axpy(int n, double a, const double *w, const double *x, double *y)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        y[i] += a * w[i] * x[i];
}

GLFM_WIDE void glfm_sum_rows(int n_rows, const int *rows, int n, const double *x, int ld,
                             double *out)
{
    n &= -GLFM_LANES;
#pragma omp simd
    for (int i = 0; i < n; i++)
        out[i] = 0.0;
    int k = 0;
    for (; k + 4 <= n_rows; k += 4) {
        const double *a = x + (ptrdiff_t)rows[k] * ld, *b = x + (ptrdiff_t)rows[k + 1] * ld;
        const double *c = x + (ptrdiff_t)rows[k + 2] * ld, *d = x + (ptrdiff_t)rows[k + 3] * ld;
#pragma omp simd
        for (int i = 0; i < n; i++)
            out[i] += (a[i] + b[i]) + (c[i] + d[i]);
    }
    for (; k < n_rows; k++) {
        const double *a = x + (ptrdiff_t)rows[k] * ld;
#pragma omp simd
        for (int i = 0; i < n; i++)
            out[i] += a[i];
    }
}

GLFM_WIDE void glfm_add_rows(int n_rows, const int *rows, int n, const float *x, float *out)
{
    for (int k = 0; k < n_rows; k++) {
        const float *row = x + (ptrdiff_t)rows[k] * n;
#pragma omp simd
        for (int i = 0; i < n; i++)
            out[i] += row[i];
    }
}

GLFM_WIDE int glfm_pick(int n, double u, const float *w)
{
    const int step = 4 * GLFM_LANES;
    float total = 0.0f, upto = 0.0f, target;
    int i = 0;
SUM(total)
    for (int j = 0; j < n; j++)
        total += w[j];
    target = (float)u * total;
    for (; i + step <= n; i += step) {
        float more = upto;
SUM(more)
        for (int j = i; j < i + step; j++)
            more += w[j];
        if (more > target)
            break;
        upto = more;
    }
    for (; i < n - 1; i++) {
        upto += w[i];
        if (upto > target)
            return i;
    }
    return n - 1;
}

GLFM_WIDE void glfm_sum_in_order(int n_rows, const int *rows, int n, const double *x, int ld,
                                 double *out)
{
    int i = 0;
    for (; i + GLFM_LANES <= n; i += GLFM_LANES) {
        double total[GLFM_LANES] = {0.0};
        for (int k = 0; k < n_rows; k++) {
            const double *row = x + (ptrdiff_t)rows[k] * ld + i;
#pragma omp simd
            for (int j = 0; j < GLFM_LANES; j++)
                total[j] += row[j];
        }
        for (int j = 0; j < GLFM_LANES; j++)
            out[i + j] = total[j];
    }
    for (; i < n; i++) {
        double total = 0.0;
        for (int k = 0; k < n_rows; k++)
            total += x[(ptrdiff_t)rows[k] * ld + i];
        out[i] = total;
    }
}

GLFM_WIDE void glfm_add_to_rows(int n_rows, const int *rows, int n, double a, const double *x,
                                int ld, double *y)
{
    n &= -GLFM_LANES;
    for (int k = 0; k < n_rows; k++) {
        double *row = y + (ptrdiff_t)rows[k] * ld;
#pragma omp simd
        for (int i = 0; i < n; i++)
            row[i] += a * x[i];
    }
}

GLFM_WIDE void glfm_add_dots(int n_rows, const int *rows, int n, const double *x, int ld,
                             const double *r, double *xr)
{
    int k = 0;
    for (; k + 4 <= n_rows; k += 4) { /* four sums at once hide how long each takes */
        const double *a = x + (ptrdiff_t)rows[k] * ld, *b = x + (ptrdiff_t)rows[k + 1] * ld;
        const double *c = x + (ptrdiff_t)rows[k + 2] * ld, *d = x + (ptrdiff_t)rows[k + 3] * ld;
        double ar = 0.0, br = 0.0, cr = 0.0, dr = 0.0;
SUM(ar, br, cr, dr)
        for (int i = 0; i < n; i++) {
            ar += a[i] * r[i];
            br += b[i] * r[i];
            cr += c[i] * r[i];
            dr += d[i] * r[i];
        }
        xr[rows[k]] += ar;
        xr[rows[k + 1]] += br;
        xr[rows[k + 2]] += cr;
        xr[rows[k + 3]] += dr;
    }
    for (; k < n_rows; k++) {
        const double *a = x + (ptrdiff_t)rows[k] * ld;
        double ar = 0.0;
SUM(ar)
        for (int i = 0; i < n; i++)
            ar += a[i] * r[i];
        xr[rows[k]] += ar;
    }
}

GLFM_WIDE void glfm_rank_one_dots(int n_rows, int n, double a, const double *v, const double *x,
                                  const double *w, const double *r, int ld, double *y, double *yr,
                                  double *yy)
{
    for (int k = 0; k < n_rows; k++) {
        double *row = y + (ptrdiff_t)k * ld;
        double b = a * v[k], c = 0.0, g = 0.0;
SUM(c, g)
        for (int i = 0; i < n; i++) {
            double t = row[i] + b * x[i];
            row[i] = t;
            c += t * r[i];
            g += w[i] * t * t;
        }
        yr[k] += c;
        yy[k] += g;
    }
}

GLFM_WIDE void glfm_bound_flips(int n, const double *z, const double *v, const double *diagonal,
                                const double *dots, const double *squares, double q, double R2,
                                double n_seen, double scaled, double variance, double *gain)
{
    n &= -GLFM_LANES;
#pragma omp simd
    for (int k = 0; k < n; k++) {
        double d = 1.0 - 2.0 * z[k], dq = 2.0 * d * v[k] + diagonal[k];
        double after = R2 + (squares[k] - 2.0 * d * dots[k]);
        after = after > 0.0 ? after : 0.0;
        gain[k] += 0.5 * (scaled - (n_seen * dq + after) / (variance + q + dq));
    }
}

GLFM_WIDE void glfm_multiply(int n, const double *x, const double *y, double *out)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        out[i] = x[i] * y[i];
}

GLFM_WIDE void glfm_subtract(int n, const double *x, const double *y, double *out)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        out[i] = x[i] - y[i];
}

GLFM_WIDE void glfm_scale(int n, double a, double *x)
{
#pragma omp simd
    for (int i = 0; i < n; i++)
        x[i] *= a;
}

GLFM_WIDE void glfm_compete(int R, int n, const double *e, int ld_e, const double *level, double *u,
                            int ld_u, double *won)
{
    n &= -GLFM_LANES;
#pragma omp simd
    for (int i = 0; i < n; i++)
        won[i] = 1.0;
    for (int j = 0; j < R; j++) {
        double *row = u + (ptrdiff_t)j * ld_u;
        const double *mean = e + (ptrdiff_t)j * ld_e;
#pragma omp simd
        for (int i = 0; i < n; i++)
            row[i] += mean[i];
    }
    for (int j = 0; j < R; j++)
        for (int k = 0; k < R; k++) {
            const double *one = u + (ptrdiff_t)j * ld_u, *other = u + (ptrdiff_t)k * ld_u;
#pragma omp simd
            for (int i = 0; i < n; i++)
                won[i] = ((level[i] == j) & (other[i] > one[i])) ? 0.0 : won[i];
        }
}

GLFM_WIDE double glfm_dot(int n, const double *x, const double *y)
{
    double total = 0.0;
SUM(total)
    for (int i = 0; i < n; i++)
        total += x[i] * y[i];
    return total;
}

GLFM_WIDE void glfm_parabolas(int n_rows, int n, const double *d, const double *g, const double *c,
                              const double *w, int ld, double *gain)
{
    int k = 0;
    n &= -GLFM_LANES;
    for (; k + 4 <= n_rows; k += 4) { /* four sums at once hide how long each takes */
        const double *w0 = w + (ptrdiff_t)k * ld, *w1 = w0 + ld, *w2 = w1 + ld, *w3 = w2 + ld;
        double d0 = d[k], d1 = d[k + 1], d2 = d[k + 2], d3 = d[k + 3];
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
SUM(s0, s1, s2, s3)
        for (int i = 0; i < n; i++) {
            double half = 0.5 * c[i];
            s0 += w0[i] * (d0 * g[i] - half * w0[i]);
            s1 += w1[i] * (d1 * g[i] - half * w1[i]);
            s2 += w2[i] * (d2 * g[i] - half * w2[i]);
            s3 += w3[i] * (d3 * g[i] - half * w3[i]);
        }
        gain[k] = s0, gain[k + 1] = s1, gain[k + 2] = s2, gain[k + 3] = s3;
    }
    for (; k < n_rows; k++) {
        const double *a = w + (ptrdiff_t)k * ld;
        double s = 0.0;
SUM(s)
        for (int i = 0; i < n; i++)
            s += a[i] * (d[k] * g[i] - 0.5 * c[i] * a[i]);
        gain[k] = s;
    }
}

GLFM_WIDE double glfm_masked_parabola(int n, double d, const double *g, const double *c,
                                      const double *w)
{
    double total = 0.0;
    n &= -GLFM_LANES;
SUM(total)
    for (int i = 0; i < n; i++)
        total += w[i] * (c[i] > 0.0 ? d * g[i] - 0.5 * c[i] * w[i] : 0.0);
    return total;
}

GLFM_WIDE void glfm_rank_one(int n_rows, int n, double a, const double *v, const double *x, int ld,
                             double *y)
{
    for (int k = 0; k < n_rows; k++) {
        double c = a * v[k];
        if (c == 0.0)
            continue;
        double *row = y + (ptrdiff_t)k * ld;
#pragma omp simd
        for (int i = 0; i < n; i++)
            row[i] += c * x[i];
    }
}

#define EACH for (int l = 0; l < GLFM_LANES; l++)

/* Q = U'U row by row of U, W = U'^-1 row by row, then Q^-1 = W'W: every inner loop adds multiples of
   one row to another, of all matrices at once. */
GLFM_WIDE void glfm_invert(int c, double *restrict Q, double *restrict U, double *restrict log_det)
{
    const size_t size = (size_t)c, n = GLFM_LANES, row = size * n; /* ints would be slower here */
    double a[GLFM_LANES];
    EACH log_det[l] = 0.0;
    for (size_t k = 0; k < size; k++) {
        double *from = Q + k * row;
        EACH {
            double pivot = from[k * n + l];
            log_det[l] += pivot > 0.0 ? log(pivot) : INFINITY;
            a[l] = 1.0 / sqrt(pivot);
        }
        for (size_t j = k; j < size; j++)
#pragma omp simd
            EACH from[j * n + l] *= a[l];
        for (size_t i = k + 1; i < size; i++) {
            double *to = Q + i * row;
            EACH a[l] = from[i * n + l];
            for (size_t j = i; j < size; j++)
#pragma omp simd
                EACH to[j * n + l] -= a[l] * from[j * n + l];
        }
    }
    for (size_t i = 0; i < size; i++) {
        double *to = U + i * row, over[GLFM_LANES];
        EACH over[l] = 1.0 / Q[i * row + i * n + l];
        memset(to, 0, i * n * sizeof *to);
        EACH to[i * n + l] = over[l];
        for (size_t k = 0; k < i; k++) {
            const double *from = U + k * row;
            EACH a[l] = Q[k * row + i * n + l] * over[l];
            for (size_t j = 0; j <= k; j++)
#pragma omp simd
                EACH to[j * n + l] -= a[l] * from[j * n + l];
        }
    }
    memset(Q, 0, size * row * sizeof *Q);
    for (size_t k = 0; k < size; k++) {
        const double *from = U + k * row;
        for (size_t i = 0; i <= k; i++) {
            double *to = Q + i * row;
            EACH a[l] = from[i * n + l];
            for (size_t j = 0; j <= i; j++)
#pragma omp simd
                EACH to[j * n + l] += a[l] * from[j * n + l];
        }
    }
}
