#include "_questions.h"

#include <string.h>

#include "_vector.h"

/* Of the short loops below GCC makes vectors, unless it unrolls them first or makes branches of
   their conditions, as its highest level does. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2")
#define EACH _Pragma("GCC unroll 1") for (int q = 0; q < GLFM_ASKED; q++)
#define INLINE static inline __attribute__((always_inline))
#else
#define EACH for (int q = 0; q < GLFM_ASKED; q++)
#define INLINE static inline
#endif

INLINE void answer(int n, const int *rows, const float *x, ptrdiff_t ld, const float *low,
                   const float *high, const double *away, int *n_left, double *left, int one)
{
    float from[GLFM_ASKED], to[GLFM_ASKED];
    int number[GLFM_ASKED];
    double total[GLFM_ASKED];
    EACH
    {
        from[q] = low[q];
        to[q] = high[q];
        number[q] = 0;
        total[q] = 0.0;
    }
    for (int i = 0; i < n; i++) {
        const float *row = x + (ptrdiff_t)(rows ? rows[i] : i) * ld;
        const double a = away[i];
        EACH
        {
            const float here = one ? row[0] : row[q];
            const int yes = (here >= from[q]) & (here <= to[q]);
            number[q] += yes;
            total[q] += yes ? a : 0.0;
        }
    }
    EACH
    {
        n_left[q] = number[q];
        left[q] = total[q];
    }
}

INLINE void answer_levels(int n, const int *rows, const float *x, ptrdiff_t ld, const float *low,
                          const float *high, const int *code, int n_levels, int *count, int one)
{
    float from[GLFM_ASKED], to[GLFM_ASKED];
    memset(count, 0, sizeof(int) * GLFM_ASKED * (size_t)n_levels);
    EACH
    {
        from[q] = low[q];
        to[q] = high[q];
    }
    for (int i = 0; i < n; i++) {
        const float *row = x + (ptrdiff_t)(rows ? rows[i] : i) * ld;
        int *of = count + (ptrdiff_t)code[i] * GLFM_ASKED;
        EACH
        {
            const float here = one ? row[0] : row[q];
            of[q] += (here >= from[q]) & (here <= to[q]);
        }
    }
}

GLFM_WIDE void glfm_ends(int n, const int *rows, const float *x, ptrdiff_t ld, float *least,
                         float *greatest)
{
    float from[GLFM_ASKED], to[GLFM_ASKED];
    const float *first = x + (ptrdiff_t)(rows ? rows[0] : 0) * ld;
    EACH
    {
        from[q] = to[q] = first[q];
    }
    for (int i = 1; i < n; i++) {
        const float *row = x + (ptrdiff_t)(rows ? rows[i] : i) * ld;
        EACH
        {
            from[q] = row[q] < from[q] ? row[q] : from[q];
            to[q] = row[q] > to[q] ? row[q] : to[q];
        }
    }
    EACH
    {
        least[q] = from[q];
        greatest[q] = to[q];
    }
}

GLFM_WIDE void glfm_answer(int n, const int *rows, const float *x, ptrdiff_t ld, const float *low,
                           const float *high, const double *away, int *n_left, double *left)
{
    answer(n, rows, x, ld, low, high, away, n_left, left, 0);
}

GLFM_WIDE void glfm_answer_of_one(int n, const int *rows, const float *x, ptrdiff_t ld,
                                  const float *low, const float *high, const double *away,
                                  int *n_left, double *left)
{
    answer(n, rows, x, ld, low, high, away, n_left, left, 1);
}

GLFM_WIDE void glfm_answer_levels(int n, const int *rows, const float *x, ptrdiff_t ld,
                                  const float *low, const float *high, const int *code,
                                  int n_levels, int *count)
{
    answer_levels(n, rows, x, ld, low, high, code, n_levels, count, 0);
}

GLFM_WIDE void glfm_answer_levels_of_one(int n, const int *rows, const float *x, ptrdiff_t ld,
                                         const float *low, const float *high, const int *code,
                                         int n_levels, int *count)
{
    answer_levels(n, rows, x, ld, low, high, code, n_levels, count, 1);
}
