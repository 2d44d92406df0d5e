/* patient_mpi.c - linked with an MPI program: its collectives sleep while they wait.
   MPI's own wait in a loop, as fits a machine with a processor for each process. With four on two processors MPICH
   then burns twenty times what the program computes: each process runs to the end of its time slice before the one that
   it waits for goes on. These stand before MPI's by its profiling interface; what is sent and added up is the same. */
#define _POSIX_C_SOURCE 199309L
#include <mpi.h>
#include <time.h>

static int patiently(int error, MPI_Request *request) {
    const struct timespec pause = {0, 20000};
    int done = 0;
    while (error == MPI_SUCCESS) {
        error = PMPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS || done) break;
        (void)nanosleep(&pause, NULL);
    }
    return error;
}

/* two names, as MPI_Bcast and PMPI_Ibcast, the parameters, and what they become */
#define PATIENT(name, starts, parameters, arguments) \
    int MPI_##name parameters { \
        MPI_Request request; \
        return patiently(PMPI_##starts arguments, &request); \
    }
#define FROM const void *from, int sent, MPI_Datatype type
#define TO   void *to, int got, MPI_Datatype type2
#define SUM  const void *from, void *to, int n, MPI_Datatype type, MPI_Op op
PATIENT(Barrier, Ibarrier, (MPI_Comm c), (c, &request))
PATIENT(Bcast, Ibcast, (TO, int root, MPI_Comm c), (to, got, type2, root, c, &request))
PATIENT(Reduce, Ireduce, (SUM, int root, MPI_Comm c), (from, to, n, type, op, root, c, &request))
PATIENT(Allreduce, Iallreduce, (SUM, MPI_Comm c), (from, to, n, type, op, c, &request))
PATIENT(Reduce_scatter, Ireduce_scatter,
    (const void *from, void *to, const int *n, MPI_Datatype type, MPI_Op op, MPI_Comm c),
    (from, to, n, type, op, c, &request))
PATIENT(Allgather, Iallgather, (FROM, TO, MPI_Comm c), (from, sent, type, to, got, type2, c, &request))
PATIENT(Allgatherv, Iallgatherv, (FROM, void *to, const int *got, const int *at, MPI_Datatype type2, MPI_Comm c),
    (from, sent, type, to, got, at, type2, c, &request))
PATIENT(Gatherv, Igatherv, (FROM, void *to, const int *got, const int *at, MPI_Datatype type2, int root, MPI_Comm c),
    (from, sent, type, to, got, at, type2, root, c, &request))
PATIENT(Scatterv, Iscatterv,
    (const void *from, const int *sent, const int *at, MPI_Datatype type, TO, int root, MPI_Comm c),
    (from, sent, at, type, to, got, type2, root, c, &request))
PATIENT(Alltoallv, Ialltoallv,
    (const void *from, const int *sent, const int *at, MPI_Datatype type, void *to, const int *got, const int *at2,
        MPI_Datatype type2, MPI_Comm c),
    (from, sent, at, type, to, got, at2, type2, c, &request))
