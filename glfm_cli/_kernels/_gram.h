/* The precision of one regression: its sums over cells, and its factor. */
#ifndef GLFM_GRAM_H
#define GLFM_GRAM_H

/* rows r = 0..n-1 of H (leading dimension ld) = a[r] x_{index[r]}, rows of x of q elements */
void glfm_gather(int n, const int *index, const double *a, int q, const double *x, int ld,
                 double *H);

/* Q_ij += sum_r H_ri H_rj for i <= j, H (n, ld), Q (ld, ld); ld is a multiple of GLFM_LANES. Lower
   triangles are of no meaning. */
void glfm_add_products(int n, int ld, const double *H, double *Q);

/* The upper triangle of Q, of its first q rows, becomes U with Q = U'U, and columns b behind it
   become U'^-1 b. Returns 0, or 1 + the first row whose pivot is not above 0. */
int glfm_factor(int q, int ld, double *Q);

#endif
