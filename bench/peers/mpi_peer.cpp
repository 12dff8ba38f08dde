// mpi_peer.cpp: a rank of an MPI library for `tutti bench --against`; built once for each MPI that is installed.
// SPDX-License-Identifier: Apache-2.0
//
//   mpirun -n 2 mpi_peer SOCKET NAME
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>

#include <tutti/error.hpp>

#include "bench/rank.hpp"

namespace {

using namespace tutti;
using namespace tutti::bench;

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return MPI_CXX_BOOL;
    case DType::int8: return MPI_INT8_T;
    case DType::int16: return MPI_INT16_T;
    case DType::int32: return MPI_INT32_T;
    case DType::int64: return MPI_INT64_T;
    case DType::uint8: return MPI_UINT8_T;
    case DType::uint16: return MPI_UINT16_T;
    case DType::uint32: return MPI_UINT32_T;
    case DType::uint64: return MPI_UINT64_T;
    case DType::float32: return MPI_FLOAT;
    case DType::float64: return MPI_DOUBLE;
    case DType::complex64: return MPI_CXX_FLOAT_COMPLEX;
    case DType::complex128: return MPI_CXX_DOUBLE_COMPLEX;
    default: throw Unsupported(fmt::format("MPI has no {}", name_of(dtype)));
  }
}

class MpiLibrary final : public Library {
 public:
  MpiLibrary() {
    MPI_Comm_rank(MPI_COMM_WORLD, &position_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &position_.size);
  }
  [[nodiscard]] RankPosition position() const override { return position_; }
  [[nodiscard]] std::string describe() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string whole(text, static_cast<std::size_t>(length));
    std::string first = whole.substr(0, whole.find_first_of(",\n"));
    std::replace(first.begin(), first.end(), '\t', ' ');
    return first;
  }
  void prepare(const BenchCase& bench_case) override {
    if (bench_case.count > std::numeric_limits<int>::max()) throw Unsupported("MPI counts elements with an int");
    type_ = type_of(bench_case.dtype);
    op_ = bench_case.dtype == DType::boolean ? MPI_LOR : MPI_SUM;
  }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void call(const TimedCall& call) override;

 private:
  void ping_pong(const TimedCall& call, int count);
  void window(const TimedCall& call, int count);

  RankPosition position_{};
  MPI_Datatype type_ = MPI_FLOAT;
  MPI_Op op_ = MPI_SUM;
  MPI_Request requests_[2 * window_messages]{};
};

void MpiLibrary::call(const TimedCall& call) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const int count = static_cast<int>(call.bench_case.count), block = count / position_.size;
  const bool in_place = call.in == call.out, at_root = position_.rank == call.root;
  const void* in = in_place ? MPI_IN_PLACE : call.in;
  switch (call.bench_case.verb) {
    case Verb::all_reduce: MPI_Allreduce(in, call.out, count, type_, op_, world); break;
    case Verb::reduce:
      MPI_Reduce(at_root ? in : call.in, at_root ? call.out : nullptr, count, type_, op_, call.root, world);
      break;
    case Verb::broadcast: MPI_Bcast(call.in, count, type_, call.root, world); break;
    case Verb::all_gather: MPI_Allgather(in, block, type_, call.out, block, type_, world); break;
    case Verb::gather: MPI_Gather(in, block, type_, call.out, block, type_, call.root, world); break;
    case Verb::reduce_scatter: MPI_Reduce_scatter_block(in, call.out, block, type_, op_, world); break;
    case Verb::scatter: MPI_Scatter(in, block, type_, call.out, block, type_, call.root, world); break;
    case Verb::all_to_all: MPI_Alltoall(in, block, type_, call.out, block, type_, world); break;
    case Verb::scan: MPI_Scan(in, call.out, count, type_, op_, world); break;
    case Verb::exscan: MPI_Exscan(in, call.out, count, type_, op_, world); break;
    case Verb::send:
      if (call.bench_case.exchange == Exchange::ping_pong) ping_pong(call, count);
      if (call.bench_case.exchange == Exchange::window) window(call, count / window_messages);
      if (call.bench_case.exchange != Exchange::sendrecv) break;
      [[fallthrough]];
    case Verb::permute:
      MPI_Sendrecv(in, count, type_, (position_.rank + 1) % position_.size, 0, call.out, count, type_,
                   (position_.rank + position_.size - 1) % position_.size, 0, world, MPI_STATUS_IGNORE);
      break;
    case Verb::barrier: MPI_Barrier(world); break;
    case Verb::recv: break;
  }
}

void MpiLibrary::ping_pong(const TimedCall& call, int count) {
  const int peer = 1 - position_.rank;
  if (peer == 1) MPI_Send(call.in, count, type_, peer, 0, MPI_COMM_WORLD);
  MPI_Recv(call.out, count, type_, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (peer == 0) MPI_Send(call.in, count, type_, peer, 0, MPI_COMM_WORLD);
}

void MpiLibrary::window(const TimedCall& call, int count) {
  int bytes = 0;
  MPI_Type_size(type_, &bytes);
  const int next = (position_.rank + 1) % position_.size;
  const int before = (position_.rank + position_.size - 1) % position_.size;
  const auto part = [&](void* whole, int i) { return static_cast<char*>(whole) + std::ptrdiff_t{i} * count * bytes; };
  for (int i = 0; i < window_messages; ++i)
    MPI_Irecv(part(call.out, i), count, type_, before, 0, MPI_COMM_WORLD, &requests_[i]);
  for (int i = 0; i < window_messages; ++i)
    MPI_Isend(part(call.in, i), count, type_, next, 0, MPI_COMM_WORLD, &requests_[window_messages + i]);
  MPI_Waitall(2 * window_messages, requests_, MPI_STATUSES_IGNORE);
}

}  // namespace

int main(int count, char** texts) {
  MPI_Init(&count, &texts);
  if (count != 3) {
    fmt::print(stderr, "usage: mpirun -n RANKS {} SOCKET NAME; tutti bench --against starts it\n", texts[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  try {
    MpiLibrary library;
    serve(library, texts[1], texts[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "mpi_peer: {}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
