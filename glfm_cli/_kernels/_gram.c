#include "_gram.h"

#include <math.h>

#include "_vector.h"

/* Indices are without sign: Python's flag that lets ints wrap keeps loops over these from vectors. */
#define LANES ((size_t)GLFM_LANES)
#define EACH for (size_t l = 0; l < LANES; l++)

GLFM_WIDE void glfm_gather(int n, const int *restrict index, const double *restrict a, int q,
                           const double *restrict x, int ld, double *restrict H)
{
    for (size_t r = 0; r < (size_t)n; r++) {
        const double *from = x + (size_t)index[r] * (size_t)q;
        double *to = H + r * (size_t)ld;
#pragma omp simd
        for (size_t k = 0; k < (size_t)q; k++)
            to[k] = a[r] * from[k];
    }
}

/* Tiles of Q stay in registers while the rows of H go by. */
GLFM_WIDE void glfm_add_products(int n, int ld, const double *restrict H, double *restrict Q)
{
    const size_t rows = (size_t)n, size = (size_t)ld;
    for (size_t J = 0; J < size; J += LANES)
        for (size_t I = 0; I <= J; I += LANES) {
            double tile[GLFM_LANES][GLFM_LANES];
            for (size_t t = 0; t < LANES; t++)
                EACH tile[t][l] = Q[(I + t) * size + J + l];
            for (size_t r = 0; r < rows; r++) {
                const double *h = H + r * size;
                for (size_t t = 0; t < LANES; t++)
#pragma omp simd
                    EACH tile[t][l] += h[I + t] * h[J + l];
            }
            for (size_t t = 0; t < LANES; t++)
                EACH Q[(I + t) * size + J + l] = tile[t][l];
        }
}

GLFM_WIDE int glfm_factor(int q, int ld, double *restrict Q)
{
    const size_t rows = (size_t)q, size = (size_t)ld;
    for (size_t k = 0; k < rows; k++) {
        double *restrict from = Q + k * size;
        if (!(from[k] > 0.0))
            return (int)k + 1;
        const double scale = 1.0 / sqrt(from[k]);
        for (size_t J = k & -LANES; J < size; J += LANES)
#pragma omp simd
            EACH from[J + l] *= scale;
        for (size_t i = k + 1; i < rows; i++) {
            double *restrict to = Q + i * size;
            const double a = from[i];
            for (size_t J = i & -LANES; J < size; J += LANES)
#pragma omp simd
                EACH to[J + l] -= a * from[J + l];
        }
    }
    return 0;
}
