#include "_vector.h"

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
    for (int start = 0; start < n; start += GLFM_LANES) {
        double sum[GLFM_LANES] = {0.0};
        for (int k = 0; k < n_rows; k++) {
            const double *row = x + (long)rows[k] * ld + start;
            for (int i = 0; i < GLFM_LANES; i++)
                sum[i] += row[i];
        }
        for (int i = 0; i < GLFM_LANES; i++)
            out[start + i] = sum[i];
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
#pragma omp simd reduction(+ : c, g)
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
#pragma omp simd reduction(+ : g)
    for (int i = 0; i < n; i++)
        g += w[i] * x[i] * x[i];
    return g;
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
