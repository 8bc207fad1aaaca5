/* Log probabilities of many intervals at once, from tables, for the row update given the weights. */
#ifndef GLFM_NORMAL_H
#define GLFM_NORMAL_H

/* log Phi and Phi on [-GLFM_EDGE, GLFM_EDGE]: a Taylor polynomial of GLFM_TERMS terms about every
   knot, 1 / GLFM_PER_UNIT apart; error below 1e-9 of log Phi, 1e-12 of Phi */
#define GLFM_EDGE 8.0
#define GLFM_PER_UNIT 32
#define GLFM_KNOTS 513
#define GLFM_TERMS 4
#define GLFM_CDF_TERMS 6

/* (GLFM_KNOTS, terms), to be filled once by the kernel that uses them */
extern double glfm_log_ndtr_table[GLFM_KNOTS * GLFM_TERMS];
extern double glfm_ndtr_table[GLFM_KNOTS * GLFM_CDF_TERMS];

/* log Phi(x) for -GLFM_EDGE <= x; that of GLFM_EDGE above it */
double glfm_near_log_ndtr(double x);

/* moved_i = t_i + d slope_i w[col_i]; return the sum of log Phi(moved_i), or any number below
   `least` as soon as the sum must end there. *far = 1 when some moved_i < -GLFM_EDGE: then the
   sum returned is only an upper bound. */
double glfm_sum_log_ndtr(int n, const double *t, double d, const double *slope, const int *col,
                         const double *w, double least, double *moved, int *far);

/* a_moved_i = a_i - d inv_i w[col_i], b_moved_i alike, p_i = Phi(b_moved_i) - Phi(a_moved_i).
   Return 1 when all p_i are accurate, 0 when some interval is too far out or too narrow. */
int glfm_band_masses(int n, const double *a, const double *b, double d, const double *inv,
                     const int *col, const double *w, double *a_moved, double *b_moved, double *p);

#endif
