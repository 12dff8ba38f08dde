// mpi_overhead.cpp: what the backend mpi costs beside the calls of MPI that it is made of, in one process, in turns.
// SPDX-License-Identifier: Apache-2.0
//
//   mpirun -n 2 mpi_overhead_openmpi [rounds]        likewise mpi_overhead_mpich, mpi_overhead_impi
//
// Each round times every way for a while, one after the other. The median of the rounds, microseconds per call, of the slowest rank.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <tutti/tutti.hpp>

namespace {

struct Way {
  std::string name;
  std::function<void()> call;
  std::vector<double> us{};
};

double timed(const std::function<void()>& call, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call();
  double us = (MPI_Wtime() - begin) / calls * 1e6;
  MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return us;
}

void finish(MPI_Request request) {
  for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void compare(const char* verb, std::size_t bytes, std::vector<Way> ways, int rounds, bool is_speaker) {
  const int calls = bytes <= 4096 ? 2000 : static_cast<int>(std::max<std::size_t>(3, (std::size_t{4} << 20) / bytes));
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways) way.us.push_back(timed(way.call, calls));
  }
  if (!is_speaker) return;
  fmt::print("{:12} {:>10}", verb, bytes);
  for (const Way& way : ways) fmt::print("  {} {:10.2f}", way.name, median(way.us));
  fmt::print("\n");
  std::fflush(stdout);
}

void compare_all(const tutti::Group& world, int rounds) {
  const bool is_speaker = world.rank() == 0;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const auto size = static_cast<std::size_t>(world.size());
  for (const std::size_t bytes : {8u, 1u << 10, 1u << 16, 1u << 18, 1u << 20, 1u << 22, 1u << 24}) {
    const std::size_t count = bytes / sizeof(float);
    const int n = static_cast<int>(count);
    std::vector<float> x(count), all(count * size);
    MPI_Request request = MPI_REQUEST_NULL;
    compare("all_reduce", bytes,
            {{"MPI", [&] { MPI_Allreduce(MPI_IN_PLACE, x.data(), n, MPI_FLOAT, MPI_SUM, comm); }},
             {"MPI_I",
              [&] {
                MPI_Iallreduce(MPI_IN_PLACE, x.data(), n, MPI_FLOAT, MPI_SUM, comm, &request);
                finish(request);
              }},
             {"Tutti", [&] { world.all_reduce(x); }}},
            rounds, is_speaker);
    compare("broadcast", bytes,
            {{"MPI", [&] { MPI_Bcast(x.data(), n, MPI_FLOAT, 0, comm); }},
             {"MPI_I",
              [&] {
                MPI_Ibcast(x.data(), n, MPI_FLOAT, 0, comm, &request);
                finish(request);
              }},
             {"Tutti", [&] { world.broadcast(x); }}},
            rounds, is_speaker);
    compare("all_gather", bytes,
            {{"MPI", [&] { MPI_Allgather(x.data(), n, MPI_FLOAT, all.data(), n, MPI_FLOAT, comm); }},
             {"MPI_I",
              [&] {
                MPI_Iallgather(x.data(), n, MPI_FLOAT, all.data(), n, MPI_FLOAT, comm, &request);
                finish(request);
              }},
             {"Tutti", [&] { world.all_gather(x, all); }}},
            rounds, is_speaker);
  }
  MPI_Comm_free(&comm);
}

}  // namespace

// MPI is initialised, and finalised, by Tutti.
int main(int argc, char** argv) { compare_all(tutti::init({.backend = "mpi"}), argc > 1 ? std::atoi(argv[1]) : 9); }
