/* The bytes of the library that calls.c makes. */
#include "candor_mpi.h"

__asm__(
    ".section .rodata\n"
    ".global candor_mpi_image\n"
    ".global candor_mpi_image_end\n"
    ".balign 16\n"
    "candor_mpi_image:\n"
#ifdef CANDOR_MPI_LIBRARY
    ".incbin \"" CANDOR_MPI_LIBRARY "\"\n"
#endif
    "candor_mpi_image_end:\n"
    ".byte 0\n"
    ".previous\n");
