/* The table of candor_mpi.h over the MPI that this was compiled against. */
#include "candor_mpi.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(candor_mpi_request), "a request has its place");

static int start(int* rank, int* size) {
  int provided = 0;
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  if (code != MPI_SUCCESS) return code;
  code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (code == MPI_SUCCESS) code = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(MPI_COMM_WORLD, size);
  return code;
}

static int send(const void* bytes, size_t n_bytes, int peer, int tag, candor_mpi_request* request) {
  MPI_Request own;
  if (n_bytes > INT_MAX) return MPI_ERR_COUNT;
  const int code = MPI_Isend(bytes, (int)n_bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &own);
  memcpy(request, &own, sizeof(own));
  return code;
}

static int receive(void* bytes, size_t n_bytes, int peer, int tag, candor_mpi_request* request) {
  MPI_Request own;
  if (n_bytes > INT_MAX) return MPI_ERR_COUNT;
  const int code = MPI_Irecv(bytes, (int)n_bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &own);
  memcpy(request, &own, sizeof(own));
  return code;
}

static int test(candor_mpi_request* request, int* is_done, size_t* n_received) {
  MPI_Request own;
  MPI_Status status;
  int n = 0;
  memcpy(&own, request, sizeof(own));
  int code = MPI_Test(&own, is_done, &status);
  memcpy(request, &own, sizeof(own));
  if (code != MPI_SUCCESS || !*is_done) return code;
  code = MPI_Get_count(&status, MPI_BYTE, &n);
  *n_received = n == MPI_UNDEFINED ? 0 : (size_t)n;
  return code;
}

static int cancel(candor_mpi_request* request) {
  MPI_Request own;
  memcpy(&own, request, sizeof(own));
  const int code = MPI_Cancel(&own);
  return code == MPI_SUCCESS ? MPI_Request_free(&own) : code;
}

static int stop(void) {
  return MPI_Finalize();
}

static void describe(int code, char* text, size_t n_bytes) {
  char words[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  if (MPI_Error_string(code, words, &n) != MPI_SUCCESS) words[0] = '\0';
  snprintf(text, n_bytes, "%s (code %d)", words, code);
}

const candor_mpi_calls* candor_mpi(void);

const candor_mpi_calls* candor_mpi(void) {
  static const candor_mpi_calls calls = {CANDOR_MPI_VERSION, start, send, receive, test, cancel, stop, describe};
  return &calls;
}
