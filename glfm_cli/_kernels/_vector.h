/* Dense vector primitives of the row update; one clone per instruction set, chosen at run time. */
#ifndef GLFM_VECTOR_H
#define GLFM_VECTOR_H

#include <stddef.h>
#include <string.h>

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

/* out += the rows `rows` of x, whose rows have n elements */
void glfm_add_rows(int n_rows, const int *rows, int n, const float *x, float *out);

/* the first i at which w[0] + ... + w[i] passes the share u of all of them, of weights w >= 0 */
int glfm_pick(int n, double u, const float *w);

/* out = sum of the rows `rows` of x (leading dimension ld), added up in their order, of any length n */
void glfm_sum_in_order(int n_rows, const int *rows, int n, const double *x, int ld, double *out);

/* the rows `rows` of y (leading dimension ld) += a x; n is a multiple of GLFM_LANES */
void glfm_add_to_rows(int n_rows, const int *rows, int n, double a, const double *x, int ld,
                      double *y);

/* xr[k] += x_k . r  for the rows k in `rows` of x (leading dimension ld) */
void glfm_add_dots(int n_rows, const int *rows, int n, const double *x, int ld, const double *r,
                   double *xr);

/* rows k = 0..n_rows-1 of y += a v[k] x;  yr[k] += y_k . r,  yy[k] += sum w y_k y_k */
void glfm_rank_one_dots(int n_rows, int n, double a, const double *v, const double *x,
                        const double *w, const double *r, int ld, double *y, double *yr,
                        double *yy);

/* gain[k] += (scaled - (n_seen dq + max(R2 + dR, 0)) / (variance + q + dq)) / 2,  where a flip
   of bit k by d = 1 - 2 z[k] moves q by dq = 2 d v + diagonal and R2 by dR = squares - 2 d dots;
   n is a multiple of GLFM_LANES.  As log(after / now) >= 1 - now / after, that is a bound of
   -(n_seen log(after / now) + R2 after / after - scaled) / 2. */
void glfm_bound_flips(int n, const double *z, const double *v, const double *diagonal,
                      const double *dots, const double *squares, double q, double R2,
                      double n_seen, double scaled, double variance, double *gain);

/* out = x y,  out = x - y,  x *= a,  elementwise */
void glfm_multiply(int n, const double *x, const double *y, double *out);
void glfm_subtract(int n, const double *x, const double *y, double *out);
void glfm_scale(int n, double a, double *x);

/* u_j += e_j for rows j = 0..R-1 of n;  won[i] = 1 where the largest is u_{level[i]}, else 0; n is a
   multiple of GLFM_LANES */
void glfm_compete(int R, int n, const double *e, int ld_e, const double *level, double *u, int ld_u,
                  double *won);

/* sum x y */
double glfm_dot(int n, const double *x, const double *y);

/* gain[k] = sum d[k] g w_k - c w_k w_k / 2  for rows k = 0..n_rows-1 of w; n is a multiple of GLFM_LANES */
void glfm_parabolas(int n_rows, int n, const double *d, const double *g, const double *c,
                    const double *w, int ld, double *gain);

/* sum d g w - c w w / 2 over the i with c > 0; n is a multiple of GLFM_LANES */
double glfm_masked_parabola(int n, double d, const double *g, const double *c, const double *w);

/* rows k = 0..n_rows-1 of y (leading dimension ld) += a v[k] x */
void glfm_rank_one(int n_rows, int n, double a, const double *v, const double *x, int ld, double *y);

/* GLFM_LANES positive definite matrices, side by side in Q (c, c, GLFM_LANES) with upper triangles, become
   their inverses, in lower triangles; log_det are the log determinants, no finite number where a matrix is not
   positive definite. U is scratch of the size of Q. */
void glfm_invert(int c, double *Q, double *U, double *log_det);

#endif
