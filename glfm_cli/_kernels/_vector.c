#include "_vector.h"

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
        const double *a = x + (long)rows[k] * ld, *b = x + (long)rows[k + 1] * ld;
        const double *c = x + (long)rows[k + 2] * ld, *d = x + (long)rows[k + 3] * ld;
#pragma omp simd
        for (int i = 0; i < n; i++)
            out[i] += (a[i] + b[i]) + (c[i] + d[i]);
    }
    for (; k < n_rows; k++) {
        const double *a = x + (long)rows[k] * ld;
#pragma omp simd
        for (int i = 0; i < n; i++)
            out[i] += a[i];
    }
}

GLFM_WIDE void glfm_add_to_rows(int n_rows, const int *rows, int n, double a, const double *x,
                                int ld, double *y)
{
    n &= -GLFM_LANES;
    for (int k = 0; k < n_rows; k++) {
        double *row = y + (long)rows[k] * ld;
#pragma omp simd
        for (int i = 0; i < n; i++)
            row[i] += a * x[i];
    }
}

GLFM_WIDE void glfm_dots(int n, const double *x, const double *r, const double *w, double *xr,
                         double *xx)
{
    double c = 0.0, g = 0.0;
SUM(c, g)
    for (int i = 0; i < n; i++) {
        double seen = w[i] * x[i];
        c += seen * r[i];
        g += seen * x[i];
    }
    *xr = c;
    *xx = g;
}

GLFM_WIDE double glfm_weighted_square(int n, const double *w, const double *x)
{
    double g = 0.0;
SUM(g)
    for (int i = 0; i < n; i++)
        g += w[i] * x[i] * x[i];
    return g;
}

GLFM_WIDE double glfm_parabola(int n, double d, const double *g, const double *c, const double *w)
{
    double total = 0.0;
    n &= -GLFM_LANES;
SUM(total)
    for (int i = 0; i < n; i++)
        total += w[i] * (d * g[i] - 0.5 * c[i] * w[i]);
    return total;
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
        double *row = y + (long)k * ld;
#pragma omp simd
        for (int i = 0; i < n; i++)
            row[i] += c * x[i];
    }
}
