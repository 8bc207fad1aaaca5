/* Dense vector primitives of the row update; one clone per instruction set, chosen at run time. */
#ifndef GLFM_VECTOR_H
#define GLFM_VECTOR_H

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define GLFM_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GLFM_WIDE
#endif

/* doubles of the widest vector; rows padded to a multiple of it need no loop for the rest */
#define GLFM_LANES 8

/* Rows of a matrix that a column is read from are far apart: fetch one that comes soon. */
#if defined(__GNUC__)
#define GLFM_PREFETCH(p) __builtin_prefetch(p)
#else
#define GLFM_PREFETCH(p) ((void)(p))
#endif
#define GLFM_AHEAD 12 /* rows */

/* y += a x */
void glfm_axpy(int n, double a, const double *x, double *y);

/* y += a w x, elementwise */
void glfm_masked_axpy(int n, double a, const double *w, const double *x, double *y);

/* out = sum of the rows `rows` of x (leading dimension ld); n is a multiple of GLFM_LANES */
void glfm_sum_rows(int n_rows, const int *rows, int n, const double *x, int ld, double *out);

/* the rows `rows` of y (leading dimension ld) += a x; n is a multiple of GLFM_LANES */
void glfm_add_to_rows(int n_rows, const int *rows, int n, double a, const double *x, int ld,
                      double *y);

/* *xr = sum w x r,  *xx = sum w x x */
void glfm_dots(int n, const double *x, const double *r, const double *w, double *xr, double *xx);

/* sum w x x */
double glfm_weighted_square(int n, const double *w, const double *x);

/* sum d g w - c w w / 2; n is a multiple of GLFM_LANES */
double glfm_parabola(int n, double d, const double *g, const double *c, const double *w);

/* the same over the i with c > 0 */
double glfm_masked_parabola(int n, double d, const double *g, const double *c, const double *w);

/* rows k = 0..n_rows-1 of y (leading dimension ld) += a v[k] x */
void glfm_rank_one(int n_rows, int n, double a, const double *v, const double *x, int ld, double *y);

#endif
