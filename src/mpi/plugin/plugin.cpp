// plugin.cpp: MPI as the library uses it, compiled once for each binary interface of MPI.
// SPDX-License-Identifier: Apache-2.0
#if defined(TUTTI_MPI_STANDARD_INTERFACE)
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <tutti/dtype.hpp>
#include <tutti/op.hpp>

#include "mpi/plugin/plugin_api.hpp"

struct TuttiMpiCommunicator {
  MPI_Comm handle = MPI_COMM_NULL;
};

struct TuttiMpiCall {
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

namespace {

using tutti::DType;
using tutti::Op;

constexpr int op_count = static_cast<int>(Op::Kind::premul) + 1;

TuttiMpiKernels kernels;
bool is_prepared = false;
std::array<MPI_Op, static_cast<std::size_t>(op_count* tutti::dtype_count)> user_ops;

/// Small floats come as float32 where they are reduced, and otherwise as bytes.
MPI_Datatype type_of(int dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::boolean:
    case DType::uint8:
    case DType::float8_e4m3:
    case DType::float8_e5m2: return MPI_UINT8_T;
    case DType::int8: return MPI_INT8_T;
    case DType::int16: return MPI_INT16_T;
    case DType::int32: return MPI_INT32_T;
    case DType::int64: return MPI_INT64_T;
    case DType::uint16:
    case DType::float16:
    case DType::bfloat16: return MPI_UINT16_T;
    case DType::uint32: return MPI_UINT32_T;
    case DType::uint64: return MPI_UINT64_T;
    case DType::float32: return MPI_FLOAT;
    case DType::float64: return MPI_DOUBLE;
    case DType::complex64: return MPI_C_FLOAT_COMPLEX;
    case DType::complex128: return MPI_C_DOUBLE_COMPLEX;
  }
  return MPI_DATATYPE_NULL;
}

/// MPI's own reduction where networks may carry it out and libraries do what Tutti means; the others are made from the library's kernels,
/// which are as fast in memory. MPI leaves open what a minimum is where one side is NaN and has no reductions for small floats. Open MPI 4.1
/// saturates sums of 8 and 16 bits where it uses AVX, and MPICH 4.0 compares unsigned numbers as signed ones.
MPI_Op own_op_of_mpi(Op::Kind op, DType dtype) {
  const bool is_plain_float = dtype == DType::float32 || dtype == DType::float64;
  const bool is_wide_integer = tutti::is_integer(dtype) && tutti::size_of(dtype) >= 4;
  switch (op) {
    case Op::Kind::sum:
    case Op::Kind::mean:
    case Op::Kind::premul: return is_wide_integer || is_plain_float || tutti::is_complex(dtype) ? MPI_SUM : MPI_OP_NULL;
    case Op::Kind::product: return is_plain_float ? MPI_PROD : MPI_OP_NULL;
    case Op::Kind::band: return is_wide_integer ? MPI_BAND : MPI_OP_NULL;
    case Op::Kind::bor: return is_wide_integer ? MPI_BOR : MPI_OP_NULL;
    case Op::Kind::bxor: return is_wide_integer ? MPI_BXOR : MPI_OP_NULL;
    default: return MPI_OP_NULL;
  }
}

// MPI passes nothing to a reduction by which it could be told from others: one function for each.
template <int index>
void reduce_elements(void* a, void* to, int* count, MPI_Datatype*) {
  kernels.reduce(index / tutti::dtype_count, index % tutti::dtype_count, to, a, *count);
}

template <int... index>
constexpr auto table_of_reductions(std::integer_sequence<int, index...>) {
  return std::array<MPI_User_function*, sizeof...(index)>{&reduce_elements<index>...};
}
constexpr auto reductions = table_of_reductions(std::make_integer_sequence<int, op_count * tutti::dtype_count>());

int op_of(const TuttiMpiCollective& what, MPI_Op* op) {
  *op = own_op_of_mpi(static_cast<Op::Kind>(what.op), static_cast<DType>(what.dtype));
  if (*op != MPI_OP_NULL) return 0;
  const auto index = static_cast<std::size_t>(what.op * tutti::dtype_count + what.dtype);
  if (user_ops[index] == MPI_OP_NULL) {
    if (const int code = MPI_Op_create(reductions[index], 1, &user_ops[index])) return code;
  }
  *op = user_ops[index];
  return 0;
}

// Everything below without the library's name in front is called through the table at the end.

int library_version(char* text) {
  static_assert(MPI_MAX_LIBRARY_VERSION_STRING <= TUTTI_MPI_TEXT_MAX);
  int length = 0;
  return MPI_Get_library_version(text, &length);
}

int standard_version(int* major, int* minor) { return MPI_Get_version(major, minor); }
int initialized(int* flag) { return MPI_Initialized(flag); }
int finalized(int* flag) { return MPI_Finalized(flag); }

void error_text(int code, char* text) {
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) std::strcpy(text, "an unknown error");
}

int initialize() {
#if defined(OPEN_MPI)
  // By itself it takes an algorithm for large arrays that needs twice the time of its blocking call; 3 is Rabenseifner's, as there.
  setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", 0);
#endif
  int provided = 0;
  return MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
}

int finalize() { return MPI_Finalize(); }

int any_thread_may_call(int* flag) {
  int provided = 0;
  const int code = MPI_Query_thread(&provided);
  *flag = provided >= MPI_THREAD_MULTIPLE ? 1 : 0;
  return code;
}

/// MPI calls this first when it is finalised, by the program or by Tutti, and still works then: what was made is freed.
int free_all(MPI_Comm, int, void*, void*) {
  kernels.before_finalize();
  for (MPI_Op& op : user_ops) {
    if (op != MPI_OP_NULL) MPI_Op_free(&op);
  }
  return MPI_SUCCESS;
}

int prepare(const TuttiMpiKernels* given) {
  kernels = *given;
  if (is_prepared) return 0;
  user_ops.fill(MPI_OP_NULL);
  int key = MPI_KEYVAL_INVALID;
  if (const int code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_all, &key, nullptr)) return code;
  if (const int code = MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr)) return code;
  is_prepared = true;
  return MPI_Comm_free_keyval(&key);
}

/// Errors come back as codes instead of ending the process.
int adopt(MPI_Comm handle, TuttiMpiCommunicator** made) {
  if (const int code = MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN)) return code;
  *made = new TuttiMpiCommunicator{handle};
  return 0;
}

int duplicate(MPI_Comm of, TuttiMpiCommunicator** made) {
  MPI_Comm handle = MPI_COMM_NULL;
  if (const int code = MPI_Comm_dup(of, &handle)) return code;
  return adopt(handle, made);
}

int duplicate_world(TuttiMpiCommunicator** made) { return duplicate(MPI_COMM_WORLD, made); }
int duplicate_fortran(int handle, TuttiMpiCommunicator** made) {
#if defined(TUTTI_MPI_STANDARD_INTERFACE)
  return duplicate(MPI_Comm_fromint(handle), made);
#else
  return duplicate(MPI_Comm_f2c(handle), made);
#endif
}

int world(TuttiMpiCommunicator** of) {
  static TuttiMpiCommunicator all{MPI_COMM_WORLD};
  *of = &all;
  return MPI_SUCCESS;
}

int place(const TuttiMpiCommunicator* communicator, int* rank, int* size) {
  if (const int code = MPI_Comm_rank(communicator->handle, rank)) return code;
  return MPI_Comm_size(communicator->handle, size);
}

int tag_max(int* tag) {
  void* value = nullptr;
  int found = 0;
  const int code = MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
  constexpr int least = 32767;  // what the standard promises
  *tag = code == MPI_SUCCESS && found != 0 ? *static_cast<int*>(value) : least;
  return code;
}

int create_group(const TuttiMpiCommunicator* of, const int* ranks, int size, int tag, TuttiMpiCommunicator** made) {
  MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  MPI_Comm handle = MPI_COMM_NULL;
  if (const int code = MPI_Comm_group(of->handle, &all)) return code;
  int code = MPI_Group_incl(all, size, ranks, &members);
  if (code == MPI_SUCCESS) {
    code = MPI_Comm_create_group(of->handle, members, tag, &handle);
    MPI_Group_free(&members);
  }
  MPI_Group_free(&all);
  return code == MPI_SUCCESS ? adopt(handle, made) : code;
}

int free_communicator(TuttiMpiCommunicator* communicator) {
  const int code = MPI_Comm_free(&communicator->handle);
  delete communicator;
  return code;
}

TuttiMpiCall* make_call() { return new (std::nothrow) TuttiMpiCall; }

void free_call(TuttiMpiCall* call) { delete call; }

// Messages of one tag between two ranks arrive in the order in which they were sent.
constexpr int permute_tag = 1, exchange_tag = 2;

int start_permute(TuttiMpiCall& call, MPI_Comm comm, const TuttiMpiCollective& what, MPI_Datatype type) {
  constexpr int tag = permute_tag;
  if (what.source >= 0) {
    if (const int code = MPI_Irecv(what.recv, what.count, type, what.source, tag, comm, &call.requests[0])) return code;
  }
  if (what.destination < 0) return 0;
  return MPI_Isend(what.send, what.count, type, what.destination, tag, comm, &call.requests[1]);
}

int start_reduction(MPI_Request* request, MPI_Comm comm, const TuttiMpiCollective& what, MPI_Datatype type) {
  MPI_Op op = MPI_OP_NULL;
  if (const int code = op_of(what, &op)) return code;
  const void* const send = what.send == nullptr ? MPI_IN_PLACE : what.send;
  switch (what.kind) {
    case TUTTI_MPI_ALL_REDUCE: return MPI_Iallreduce(send, what.recv, what.count, type, op, comm, request);
    case TUTTI_MPI_REDUCE: return MPI_Ireduce(send, what.recv, what.count, type, op, what.root, comm, request);
    case TUTTI_MPI_REDUCE_SCATTER: return MPI_Ireduce_scatter(send, what.recv, what.counts, type, op, comm, request);
    case TUTTI_MPI_SCAN: return MPI_Iscan(send, what.recv, what.count, type, op, comm, request);
    case TUTTI_MPI_EXSCAN: return MPI_Iexscan(send, what.recv, what.count, type, op, comm, request);
    default: return MPI_ERR_ARG;
  }
}

int start(TuttiMpiCall* call, TuttiMpiCommunicator* communicator, const TuttiMpiCollective* collective) {
  const TuttiMpiCollective& what = *collective;
  const MPI_Comm comm = communicator->handle;
  const MPI_Datatype type = type_of(what.dtype);
  const void* const send = what.send == nullptr ? MPI_IN_PLACE : what.send;
  MPI_Request* const request = &call->requests[0];
  switch (what.kind) {
    case TUTTI_MPI_BROADCAST: return MPI_Ibcast(what.recv, what.count, type, what.root, comm, request);
    case TUTTI_MPI_ALL_GATHER:
      return MPI_Iallgatherv(send, what.count, type, what.recv, what.counts, what.offsets, type, comm, request);
    case TUTTI_MPI_GATHER:
      return MPI_Igatherv(send, what.count, type, what.recv, what.counts, what.offsets, type, what.root, comm, request);
    case TUTTI_MPI_SCATTER:
      return MPI_Iscatterv(what.send, what.counts, what.offsets, type, what.recv == nullptr ? MPI_IN_PLACE : what.recv,
                           what.count, type, what.root, comm, request);
    case TUTTI_MPI_ALL_TO_ALL:
      return MPI_Ialltoallv(what.send, what.counts, what.offsets, type, what.recv, what.recv_counts, what.recv_offsets,
                            type, comm, request);
    case TUTTI_MPI_PERMUTE: return start_permute(*call, comm, what, type);
    default: return start_reduction(request, comm, what, type);
  }
}

int start_exchange(TuttiMpiCall* call, TuttiMpiCommunicator* communicator, const TuttiMpiExchange* what) {
  const MPI_Comm comm = communicator->handle;
  if (what->source >= 0) {
    if (const int code =
            MPI_Irecv(what->recv, what->recv_bytes, MPI_BYTE, what->source, exchange_tag, comm, &call->requests[0]))
      return code;
  }
  if (what->destination < 0) return MPI_SUCCESS;
  return MPI_Isend(what->send, what->send_bytes, MPI_BYTE, what->destination, exchange_tag, comm, &call->requests[1]);
}

int test(TuttiMpiCall* call, int* done) {
  if (call->requests[1] == MPI_REQUEST_NULL) return MPI_Test(&call->requests[0], done, MPI_STATUS_IGNORE);
  return MPI_Testall(static_cast<int>(call->requests.size()), call->requests.data(), done, MPI_STATUSES_IGNORE);
}

constexpr TuttiMpiPlugin plugin{.version = TUTTI_MPI_PLUGIN_VERSION,
                                .interface_name = TUTTI_MPI_INTERFACE,
                                .library_version = library_version,
                                .standard_version = standard_version,
                                .initialized = initialized,
                                .finalized = finalized,
                                .error_text = error_text,
                                .initialize = initialize,
                                .finalize = finalize,
                                .any_thread_may_call = any_thread_may_call,
                                .prepare = prepare,
                                .duplicate_world = duplicate_world,
                                .duplicate_fortran = duplicate_fortran,
                                .world = world,
                                .place = place,
                                .tag_max = tag_max,
                                .create_group = create_group,
                                .free_communicator = free_communicator,
                                .make_call = make_call,
                                .free_call = free_call,
                                .start = start,
                                .start_exchange = start_exchange,
                                .test = test};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TuttiMpiPlugin* tutti_mpi_plugin() { return &plugin; }
