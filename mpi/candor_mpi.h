/* The few functions of MPI that ranks use, as a table: what implements it is compiled against the MPI that the builder
 * has, linked into the command as bytes, and opened where mpirun started the process. So the command needs no MPI
 * anywhere else, and any MPI will do: plain C, one thread, nothing collective, nothing that waits but start and stop. */
#ifndef CANDOR_MPI_CALLS_H
#define CANDOR_MPI_CALLS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CANDOR_MPI_VERSION = 1 };

/* A transfer on its way, as MPI knows it. */
typedef struct {
  void* words[2];
} candor_mpi_request;

/* Every function but `describe` returns 0, or MPI's code. All are called by one thread. */
typedef struct {
  int version;
  int (*start)(int* rank, int* size); /* waits until all ranks have started */
  int (*send)(const void* bytes, size_t n_bytes, int peer, int tag, candor_mpi_request* request);
  int (*receive)(void* bytes, size_t n_bytes, int peer, int tag, candor_mpi_request* request);
  int (*test)(candor_mpi_request* request, int* is_done, size_t* n_received);
  int (*cancel)(candor_mpi_request* request);
  int (*stop)(void); /* waits until all ranks stop */
  void (*describe)(int code, char* text, size_t n_bytes);
} candor_mpi_calls;

/* What the opened library is asked for. */
typedef const candor_mpi_calls* (*candor_mpi_entry)(void);

/* The library, as bytes; empty where the builder had no MPI. */
extern const unsigned char candor_mpi_image[];
extern const unsigned char candor_mpi_image_end[];

#ifdef __cplusplus
}
#endif

#endif
