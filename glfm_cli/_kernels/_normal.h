/* Log probabilities of many intervals at once, for the draw of bits given the weights.

   A cell is an interval of a normal variable; what is known of n cells comes in compact arrays,
   n a multiple of GLFM_LANES. Results hold where no interval lies wholly beyond GLFM_FAR, with a
   relative error of a probability below 1e-11; else *far is set to 1. */
#ifndef GLFM_NORMAL_H
#define GLFM_NORMAL_H

#include <stdint.h>

#define GLFM_FAR (-8.0)
#define GLFM_NARROW (1e-5)

/* u becomes log(u / (1 - u)), relative error 1e-12, for 0 < u < 1, and less than -700 for 0; n is a multiple of
   GLFM_LANES. */
void glfm_log_odds(int n, double *u);

/* Return the sum of log p over cells, as many one-sided and two-sided ones as a multiple of GLFM_LANES:

       sides   p = Phi(t),  slope = dt / deta            g = dlog p / deta, and  c <= -d2log p / deta2
                                                         as long as t moves by at most reach
       bands   p = Phi(b) - Phi(a),  da / deta = db / deta = -inv              band_g = dlog p / deta  */
double glfm_look(int n_sides, const double *t, const double *slope, const double *reach, double *g, double *c,
                 int n_bands, const double *a, const double *b, const double *inv, double *band_g, int *far);

/* Return the sum of log(Phi(b_i) - Phi(a_i)); ends may be infinite. *far = 1 also where an interval is
   narrower than GLFM_NARROW. */
double glfm_log_intervals(int n, const double *a, const double *b, int *far);

/* What cells are that are neither missing nor points. */
enum { GLFM_SETTLED, GLFM_BAND, GLFM_SIDE };

/* How n cells of a row are known, eta their means. Known or with equal ends: points, with inv_sd one over
   the noise's standard deviation. Intervals, with inv one over the standard deviation of what they
   bound, are points, too, where they are very narrow; else `kind` says which they are, and

       low, high = ends in standard units          curve = no more than -d2log p / deta2 of a band
       t, dt = of a side, p = Phi(t), dt/deta

   g, c = slope and curvature of the log density of points, 0 elsewhere. Where seen = 0 all is 0. */
void glfm_place_cells(int n, const double *y, const double *lower, const double *upper,
                      const double *eta, const double *known, const double *seen,
                      const double *inv_sd, const double *inv, double *g, double *c, double *low,
                      double *high, double *t, double *dt, double *curve, double *kind);

/* out = the sums of first_m p_m and second_m p_m, p_m = P(at_m <= y < end) of a normal with mean eta and
   standard deviation 1 / inv; end may be infinite. */
void glfm_sum_steps(int n, const double *at, const double *first, const double *second, double eta, double inv,
                    double end, double *out);

/* Return sum_i weight_i Phi((y - mean_i) / sd_i); slope is its derivative. */
double glfm_mixture_cdf(int n, const double *mean, const double *sd, const double *weight, double y,
                        double *slope);

#define GLFM_OUTER (-6.0)
#define GLFM_SLIM (1e-4)

/* x_i = the u_i-quantile, 0 <= u_i < 1, of a standard normal between a_i and b_i, absolute error below
   1e-10. NaN where the interval lies wholly beyond GLFM_OUTER, on either side, or is narrower than
   GLFM_SLIM: quantiles lose digits there. Ends may be infinite. */
void glfm_between(int n, const double *a, const double *b, const double *u, double *x);

/* x = 2 n standard normals from n random words: of each 40 bits are a radius and 24 an angle; n is a
   multiple of GLFM_LANES. [Box and Muller 1958] */
void glfm_normals(int n, const uint64_t *words, double *x);

/* Cells whose level probabilities are computed together. */
#define GLFM_CELLS 16

/* out[r][i] = P(utility r is the largest) of GLFM_CELLS cells of R levels, by the trapezoid rule with n_nodes
   nodes from low[i], step[i] apart; e and inv are means and one over standard deviations. All but low and step
   are (R, GLFM_CELLS); cdf and pdf are scratch. Out adds up to 1 over the levels. */
void glfm_level_probabilities(int R, int n_nodes, const double *low, const double *step, const double *e,
                              const double *inv, double *cdf, double *pdf, double *out);

/* t near the modes of -(t - e_T)^2 / 2 + sum_{j != T} log Phi(t - e_j) of GLFM_CELLS cells, with minus the
   sum's second derivative there, by Newton's method until no gap of t's equation is above the tolerance: on an
   increasing concave function, from below, it needs no bracket. e is (R, GLFM_CELLS), T what `winner` says. */
void glfm_modes(int R, const double *e, const double *winner, double tolerance, double *t, double *curvature);

/* Sum over GLFM_CELLS nodes x_k of weight[k] exp((t - e_T)^2 / 2 - (u_k - e_T)^2 / 2) prod_{j != T} Phi(u_k - e_j),
   u_k = t + scale x_k; below[j] is the same sum of terms times phi / Phi of u_k - e_j, 0 for T. Only where no
   t - e_j is below GLFM_FAR. ratio (R, GLFM_CELLS) is scratch. */
double glfm_below_largest(int R, int T, const double *e, double t, double scale, const double *node,
                          const double *weight, double *ratio, double *below);

#endif
