/* Sums over the components of a row whose weights are gamma: elementary functions on whole arrays. */
#ifndef GLFM_GAMMA_H
#define GLFM_GAMMA_H

#include <stdint.h>

/* Lengths named n or K below that are said to be padded are multiples of this. */
#define GLFM_PAD 8

/* out = psi(a) - log b, a > 0 (below 1e-12 taken for 1e-12), b > 0 */
void glfm_log_means(int n, const double *a, const double *b, double *out);

/* out = exp(x - the largest x), 0 below 1e-200; return the largest */
double glfm_relative_exp(int n, const double *x, double *out);

/* Split the counts of one row among K components (padded), share_k proportional to x[k] a[column, k]:
   ratio = y / sum_k x a,   out[k] = x[k] sum ratio a   (the counts of component k)
   Return sum y log(sum_k x a) where `wanted`, else 0.  4 K flops a cell. */
double glfm_split_counts(int64_t cells, const int *column, const int *y, int K, const double *x,
                         const double *a, int wanted, double *ratio, double *out);

/* The same for components 0..T-1, but the share of a cell in the component where its count mostly is
   rests on other cells: of top[cell], with own[cell] of the cell's count in it, which is taken out of
   the row's n[k] and of the column's A[column, k] (I, T); what is left is at least w[k] and `least`.
   was = top,   change = what its count differs by from ratio x a.   top and own are then renewed. */
void glfm_leave_out(int64_t cells, const int *column, const int *y, int K, int T, const double *x,
                    const double *n, const double *w, const double *a, const double *A,
                    double least, int16_t *top, float *own, int16_t *was, float *change,
                    double *ratio, double *out);

/* out[k] = sum ratio[cell] x[row, k] over the cells of one column; K padded. 2 K flops a cell. */
void glfm_gather_counts(int64_t cells, const int *row, const int *cell, int K, const double *ratio,
                        const double *x, double *out);

/* out = sum_j c[j] M[j, :]   and   out[j] = M[j, :] . q  for the rows j = 0..J-1 of M (J, K), K padded */
void glfm_combine_rows(int J, int K, const double *c, const double *M, double *out);
void glfm_dot_rows(int J, int K, const double *M, const double *q, double *out);

/* Moments of the prior rate r of x under g ~ N(mean, var): log_r = E log r, rho = E r.
   exp link: r = exp(-g).  softplus link: r = 1 / log(1 + exp g), by a quadrature of Q nodes in units
   of the sd, whose weights add up to 1. */
void glfm_exp_moments(int K, const double *mean, const double *var, double *log_r, double *rho);
void glfm_softplus_moments(int K, int Q, const double *node, const double *weight,
                           const double *mean, const double *var, double *log_r, double *rho);

/* Partial derivatives of those of the softplus link by mean (_m) and var (_v) [Bonnet; Price]. */
void glfm_softplus_partials(int K, int Q, const double *node, const double *weight,
                            const double *mean, const double *var, double *log_m, double *log_v,
                            double *rho_m, double *rho_v);

/* sum w log_r - (w + n) log(rho + S) */
double glfm_rate_objective(int K, const double *w, const double *n, const double *log_r,
                           const double *rho, const double *S);

/* sum logGamma(w + n) - logGamma(w); a term is 0 where n < 1e-12 */
double glfm_log_gamma_rise(int K, const double *w, const double *n);

/* f += logGamma(w+n) - logGamma(w);  first += w (psi(w+n) - psi(w));
   second += w^2 (psi'(w+n) - psi'(w));  elementwise, nothing where n < 1e-12 */
void glfm_add_rises(int K, const double *w, const double *n, double *f, double *first,
                    double *second);

/* log_sum += log(rho + S);  mean_sum += (w + n) / (rho + S) */
void glfm_add_rates(int K, const double *w, const double *n, const double *rho, const double *S,
                    double *log_sum, double *mean_sum);

/* gradient[j, :] += p m[j] + q SL[j, :]   for j = 0..D-1, arrays (D, K) */
void glfm_add_gradient(int D, int K, const double *p, const double *q, const double *m,
                       const double *SL, double *gradient);

/* H[ij, :] += c (E[i, :] E[j, :] + cov[ij])   for the pairs i >= j, in the order 00 10 11 20 .. */
void glfm_add_outer(int D, int K, const double *c, const double *E, const double *cov, double *H);

#endif
