/* What members of a node of a tree answer to many questions at once; see _forest.pyx. */
#ifndef GLFM_QUESTIONS_H
#define GLFM_QUESTIONS_H

#include <stddef.h>

/* questions that are answered together, low <= x <= high each */
#define GLFM_ASKED 16

/* Of the rows `rows` of x (leading dimension ld), whose first GLFM_ASKED elements are asked one
   question each: how many answer yes, and the sum of `away` of those, in their order; `away`
   goes by members, not rows. rows = NULL: the first n. */
void glfm_answer(int n, const int *rows, const float *x, ptrdiff_t ld, const float *low,
                 const float *high, const double *away, int *n_left, double *left);

/* Of such rows, n > 0: the least and the greatest of each of the first GLFM_ASKED elements. */
void glfm_ends(int n, const int *rows, const float *x, ptrdiff_t ld, float *least,
               float *greatest);

/* As glfm_answer, where all questions are about the first element. */
void glfm_answer_of_one(int n, const int *rows, const float *x, ptrdiff_t ld, const float *low,
                        const float *high, const double *away, int *n_left, double *left);

/* Of those that answer yes, how many are at each of n_levels levels, count (n_levels, GLFM_ASKED);
   code goes by members. */
void glfm_answer_levels(int n, const int *rows, const float *x, ptrdiff_t ld, const float *low,
                        const float *high, const int *code, int n_levels, int *count);

/* The same, where all questions are about the first element. */
void glfm_answer_levels_of_one(int n, const int *rows, const float *x, ptrdiff_t ld,
                               const float *low, const float *high, const int *code, int n_levels,
                               int *count);

#endif
