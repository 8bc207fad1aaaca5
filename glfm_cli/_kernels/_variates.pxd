from numpy.random cimport bitgen_t

cdef bitgen_t* bitgen_of(object rng) except NULL
cdef double truncated_normal(
    bitgen_t* bitgen, double mean, double sd, double lower, double upper
) noexcept nogil
cdef void standard_truncated_normals(
    bitgen_t* bitgen, int n, double* a, double* b, double* u, double* x
) noexcept nogil
cdef double placed(
    bitgen_t* bitgen, double x, double mean, double sd, double lower, double upper
) noexcept nogil
