// where_am_i.cpp: a rank that joins its job, makes a call, and prints its place; started by every launcher.
// SPDX-License-Identifier: Apache-2.0
//
//   where_am_i [--method M] [--rank R] [--size N] [--timeout SECONDS] [--times N] [--mpi before|after]
//
// One line on stdout if all is well; exit 1 and the error on stderr if not. --mpi also has MPI started in this process,
// before or after Tutti, with whichever MPI library the launcher's environment calls for.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include <tutti/connector.hpp>
#include <tutti/error.hpp>

namespace {

struct Arguments {
  tutti::InitOptions options;
  int times = 1;
  std::string mpi;
};

Arguments parse(int count, char** texts) {
  Arguments arguments;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = texts[i];
    const std::string value = texts[i + 1];
    if (name == "--method") {
      arguments.options.init_method = value;
    } else if (name == "--rank") {
      arguments.options.rank = std::stoi(value);
    } else if (name == "--size") {
      arguments.options.size = std::stoi(value);
    } else if (name == "--timeout") {
      arguments.options.timeout = std::chrono::seconds(std::stoi(value));
    } else if (name == "--times") {
      arguments.times = std::stoi(value);
    } else if (name == "--mpi") {
      arguments.mpi = value;
    } else {
      throw std::runtime_error(fmt::format("unknown argument {}", name));
    }
  }
  return arguments;
}

// MPI_Init and MPI_Finalize have the same form in every MPI, so one program can use either without being built for it.
class Mpi {
 public:
  Mpi() {
    const char* name = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr ? "libmpi.so.40" : "libmpich.so.12";
    library_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    if (find<int(int*, char***)>("MPI_Init")(nullptr, nullptr) != 0) throw std::runtime_error("MPI_Init failed");
  }
  ~Mpi() { find<int()>("MPI_Finalize")(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

 private:
  template <class Function>
  Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void* library_ = nullptr;
};

void expect(bool truth, std::string_view what) {
  if (!truth) throw std::runtime_error(fmt::format("wrong: {}", what));
}

void talk(tutti::Connector& connector, tutti::TimePoint deadline) {
  const tutti::Place& place = connector.place();
  const auto values = connector.exchange(fmt::format("{}", place.rank * place.rank), deadline);
  expect(static_cast<int>(values.size()) == place.size, "the number of values in the exchange");
  for (int rank = 0; rank < place.size; ++rank) {
    expect(values[static_cast<std::size_t>(rank)] == fmt::format("{}", rank * rank), "a value of the exchange");
  }
  const int root = place.size - 1;
  expect(connector.broadcast(place.rank == root ? "hello" : "", root, deadline) == "hello", "the broadcast");
  expect(connector.secret().size() == 32, "the size of the secret");
  connector.barrier(deadline);
}

void run(const Arguments& arguments) {
  for (int i = 0; i < arguments.times; ++i) {
    const auto connector = tutti::connect(arguments.options);
    talk(*connector, tutti::deadline_after(tutti::steady_clock().now(), arguments.options.timeout));
    const tutti::Place& p = connector->place();
    fmt::print("rank {} of {}: local {} of {}, node {} of {}; {}\n", p.rank, p.size, p.local_rank, p.local_size,
               p.node_rank, p.node_count, connector->describe());
  }
}

}  // namespace

int main(int count, char** texts) {
  try {
    const Arguments arguments = parse(count, texts);
    if (arguments.mpi == "before") {
      const Mpi mpi;
      run(arguments);
    } else {
      run(arguments);
      if (arguments.mpi == "after") const Mpi mpi;
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "where_am_i: {}\n", error.what());
    return 1;
  }
}
