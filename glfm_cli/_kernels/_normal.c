#include "_normal.h"
#include "_vector.h"

#define BLOCK 16
#define FAR (-5.0)    /* Phi below it is too small a difference of table values */
#define NARROW (1e-4) /* so is the mass of such an interval */

double glfm_log_ndtr_table[GLFM_KNOTS * GLFM_TERMS];
double glfm_ndtr_table[GLFM_KNOTS * GLFM_CDF_TERMS];

static inline double clamp(double x)
{
    x = x < -GLFM_EDGE ? -GLFM_EDGE : x;
    return x > GLFM_EDGE ? GLFM_EDGE : x;
}

static inline double log_ndtr_at(double x)
{
    int k = (int)((x + GLFM_EDGE) * GLFM_PER_UNIT + 0.5);
    double d = x - ((double)k / GLFM_PER_UNIT - GLFM_EDGE);
    const double *p = glfm_log_ndtr_table + GLFM_TERMS * k;
    return p[0] + d * (p[1] + d * (p[2] + d * p[3]));
}

static inline double ndtr_at(double x)
{
    int k = (int)((x + GLFM_EDGE) * GLFM_PER_UNIT + 0.5);
    double d = x - ((double)k / GLFM_PER_UNIT - GLFM_EDGE);
    const double *p = glfm_ndtr_table + GLFM_CDF_TERMS * k;
    return p[0] + d * (p[1] + d * (p[2] + d * (p[3] + d * (p[4] + d * p[5]))));
}

double glfm_near_log_ndtr(double x)
{
    return log_ndtr_at(clamp(x));
}

GLFM_WIDE double glfm_sum_log_ndtr(int n, const double *t, double d, const double *slope,
                                   const int *col, const double *w, double least, double *moved,
                                   int *far)
{
    double total = 0.0, lowest = 0.0;
    for (int start = 0; start < n; start += BLOCK) {
        int end = start + BLOCK < n ? start + BLOCK : n;
#pragma omp simd reduction(+ : total) reduction(min : lowest)
        for (int i = start; i < end; i++) {
            double x = t[i] + d * slope[i] * w[col[i]];
            moved[i] = x;
            lowest = x < lowest ? x : lowest;
            total += log_ndtr_at(clamp(x));
        }
        if (total < least)
            break; /* every term to come is at most 0 */
    }
    *far = lowest < -GLFM_EDGE;
    return total;
}

GLFM_WIDE int glfm_band_masses(int n, const double *a, const double *b, double d,
                               const double *inv, const int *col, const double *w,
                               double *a_moved, double *b_moved, double *p)
{
    int bad = 0;
#pragma omp simd reduction(| : bad)
    for (int i = 0; i < n; i++) {
        double shift = d * inv[i] * w[col[i]];
        double low = a[i] - shift, high = b[i] - shift;
        a_moved[i] = low;
        b_moved[i] = high;
        /* subtract in the lower tail */
        double x = low > 0.0 ? -high : low, y = low > 0.0 ? -low : high;
        bad |= (y < FAR) | (y - x < NARROW);
        p[i] = ndtr_at(clamp(y)) - ndtr_at(clamp(x));
    }
    return !bad;
}
