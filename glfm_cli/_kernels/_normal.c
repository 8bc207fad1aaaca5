#include "_normal.h"
#include "_vector.h"

#define BLOCK 32

double glfm_log_ndtr_table[GLFM_KNOTS * GLFM_TERMS];

GLFM_WIDE double glfm_sum_log_ndtr(int n, const double *t, double a, const double *c,
                                   const int *col, const double *b, double least, double *moved,
                                   int *far)
{
    double total = 0.0, lowest = 0.0;
    for (int start = 0; start < n; start += BLOCK) {
        int end = start + BLOCK < n ? start + BLOCK : n;
#pragma omp simd reduction(+ : total) reduction(min : lowest)
        for (int i = start; i < end; i++) {
            double x = t[i] + a * c[i] * b[col[i]];
            moved[i] = x;
            lowest = x < lowest ? x : lowest;
            total += glfm_near_log_ndtr(x < -GLFM_EDGE ? -GLFM_EDGE : x);
        }
        if (total < least)
            break; /* every term to come is at most 0 */
    }
    *far = lowest < -GLFM_EDGE;
    return total;
}
