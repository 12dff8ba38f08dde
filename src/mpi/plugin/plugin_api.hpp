// plugin_api.hpp: what a plug-in for one binary interface of MPI offers to the library, which knows no mpi.h. C types only.
// SPDX-License-Identifier: Apache-2.0
//
// Open MPI's handles are addresses, MPICH's are numbers, and the constants differ: what is compiled against one mpi.h runs with the
// libraries of that binary interface alone. So everything that names MPI is in plugin.cpp, which is compiled once per interface. A plug-in
// links no MPI: the library opens MPI first, for all to see, and the plug-in then finds the symbols there.
//
// Functions that return int return 0, or MPI's error code. Any thread may call them (MPI_THREAD_MULTIPLE).
#pragma once

#include <stdint.h>

extern "C" {

#define TUTTI_MPI_PLUGIN_VERSION 3
#define TUTTI_MPI_PLUGIN_SYMBOL "tutti_mpi_plugin"
#define TUTTI_MPI_TEXT_MAX 8192  // MPI_MAX_LIBRARY_VERSION_STRING of all interfaces is at most this

typedef struct TuttiMpiCommunicator TuttiMpiCommunicator;
typedef struct TuttiMpiCall TuttiMpiCall;

typedef enum TuttiMpiKind {
  TUTTI_MPI_ALL_REDUCE,
  TUTTI_MPI_REDUCE,
  TUTTI_MPI_BROADCAST,
  TUTTI_MPI_ALL_GATHER,
  TUTTI_MPI_GATHER,
  TUTTI_MPI_REDUCE_SCATTER,
  TUTTI_MPI_SCATTER,
  TUTTI_MPI_ALL_TO_ALL,
  TUTTI_MPI_SCAN,
  TUTTI_MPI_EXSCAN,
  TUTTI_MPI_PERMUTE,
} TuttiMpiKind;

/// One collective on contiguous memory. Counts and offsets are elements of `dtype`; arrays have an entry for each rank.
typedef struct TuttiMpiCollective {
  TuttiMpiKind kind;
  int dtype;  // tutti::DType
  int op;     // tutti::Op::Kind
  int root;
  int count;         // where there are no blocks; of this rank's block otherwise
  const void* send;  // null: what is in `recv`, at its place
  void* recv;
  const int* counts;  // of the blocks: what goes to each rank, or comes from each
  const int* offsets;
  const int* recv_counts;  // all_to_all
  const int* recv_offsets;
  int destination, source;  // permute; -1: none
} TuttiMpiCollective;

/// Bytes to one rank and from one, which may be another. −1: none. Those between two ranks arrive in the order in which they were sent.
typedef struct TuttiMpiExchange {
  const void* send;
  int send_bytes;
  int destination;
  void* recv;
  int recv_bytes;  // at most
  int source;
} TuttiMpiExchange;

/// What the plug-in calls in the library.
typedef struct TuttiMpiKernels {
  /// to[i] = a[i] ⊕ to[i].
  void (*reduce)(int op, int dtype, void* to, const void* a, int64_t count);
  /// MPI is about to be finalised, by the program or by Tutti.
  void (*before_finalize)(void);
} TuttiMpiKernels;

typedef struct TuttiMpiPlugin {
  int version;                 // TUTTI_MPI_PLUGIN_VERSION
  const char* interface_name;  // "Open MPI", "MPICH", …

  // Allowed at any time.
  int (*library_version)(char* text);  // TUTTI_MPI_TEXT_MAX bytes
  int (*standard_version)(int* major, int* minor);
  int (*initialized)(int* flag);
  int (*finalized)(int* flag);
  void (*error_text)(int code, char* text);  // TUTTI_MPI_TEXT_MAX bytes

  /// MPI_Init_thread(MPI_THREAD_MULTIPLE).
  int (*initialize)(void);
  int (*finalize)(void);
  /// Whether MPI was initialised so that any thread may call it.
  int (*any_thread_may_call)(int* flag);
  /// After MPI is initialised, before anything below.
  int (*prepare)(const TuttiMpiKernels* kernels);

  /// A communicator of the library's own with the ranks of MPI_COMM_WORLD, or of the one that MPI_Comm_c2f() gave. Blocks until all
  /// its ranks have called this.
  int (*duplicate_world)(TuttiMpiCommunicator** made);
  int (*duplicate_fortran)(int handle, TuttiMpiCommunicator** made);
  /// MPI_COMM_WORLD itself, to make groups from. Blocks nobody; never freed.
  int (*world)(TuttiMpiCommunicator** of);
  int (*place)(const TuttiMpiCommunicator* communicator, int* rank, int* size);
  int (*tag_max)(int* tag);
  /// The communicator of these ranks of `of`, in this order. Blocks until all of them have called this.
  int (*create_group)(const TuttiMpiCommunicator* of, const int* ranks, int size, int tag, TuttiMpiCommunicator** made);
  int (*free_communicator)(TuttiMpiCommunicator* communicator);

  /// A call that can be started again and again, one at a time.
  TuttiMpiCall* (*make_call)(void);
  /// It must not be under way.
  void (*free_call)(TuttiMpiCall* call);
  int (*start)(TuttiMpiCall* call, TuttiMpiCommunicator* communicator, const TuttiMpiCollective* what);
  /// Its messages are no others' but those of other exchanges.
  int (*start_exchange)(TuttiMpiCall* call, TuttiMpiCommunicator* communicator, const TuttiMpiExchange* what);
  int (*test)(TuttiMpiCall* call, int* done);
} TuttiMpiPlugin;

typedef const TuttiMpiPlugin* (*TuttiMpiPluginEntry)(void);

}  // extern "C"
