from numpy.random cimport bitgen_t

cdef bitgen_t* bitgen_of(object rng) except NULL
cdef double truncated_normal(
    bitgen_t* bitgen, double mean, double sd, double lower, double upper
) noexcept nogil
