/* Logarithms of normal probabilities from a table, for the row update given the weights. */
#ifndef GLFM_NORMAL_H
#define GLFM_NORMAL_H

/* log Phi on [-GLFM_EDGE, GLFM_EDGE]: a Taylor polynomial of GLFM_TERMS terms about every knot,
   1 / GLFM_PER_UNIT apart, relative error below 1e-11 */
#define GLFM_EDGE 8.0
#define GLFM_PER_UNIT 32
#define GLFM_KNOTS 513
#define GLFM_TERMS 6

/* (GLFM_KNOTS, GLFM_TERMS), to be filled once by the kernel that uses it */
extern double glfm_log_ndtr_table[GLFM_KNOTS * GLFM_TERMS];

/* log Phi(x) for -GLFM_EDGE <= x; 0 above GLFM_EDGE */
static inline double glfm_near_log_ndtr(double x)
{
    x = x > GLFM_EDGE ? GLFM_EDGE : x;
    int k = (int)((x + GLFM_EDGE) * GLFM_PER_UNIT + 0.5);
    double d = x - ((double)k / GLFM_PER_UNIT - GLFM_EDGE);
    const double *p = glfm_log_ndtr_table + GLFM_TERMS * k;
    return p[0] + d * (p[1] + d * (p[2] + d * (p[3] + d * (p[4] + d * p[5]))));
}

/* moved_i = t_i + a c_i b[col_i]; return the sum of log Phi(moved_i), or any number below `least`
   as soon as the sum must end there. *far = 1 when some moved_i < -GLFM_EDGE: then the sum
   returned is only an upper bound. */
double glfm_sum_log_ndtr(int n, const double *t, double a, const double *c, const int *col,
                         const double *b, double least, double *moved, int *far);

#endif
