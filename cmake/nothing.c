/* A target needs a source; what the library holds comes from archives. */
typedef int candor_nothing;
