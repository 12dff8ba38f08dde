// thread_world.cpp: ranks as threads, over TCP on loopback or in shared memory.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <tutti/init.hpp>

#include "rendezvous/store_connector.hpp"
#include "store/memory_store.hpp"
#include "world.hpp"

namespace tutti::contract {
namespace {

/// A selection table as init() finds it: in a file that the environment names. Gone with the object.
class TableFile {
 public:
  explicit TableFile(const std::string& text) {
    if (text.empty()) return;
    path_ = "/tmp/tutti-table-XXXXXX";
    const int file = mkstemp(path_.data());
    if (file < 0) throw std::runtime_error("no temporary file for the table");
    close(file);
    std::ofstream(path_) << text;
    setenv("TUTTI_TABLE", path_.c_str(), 1);
  }
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;
  ~TableFile() {
    if (path_.empty()) return;
    unsetenv("TUTTI_TABLE");
    unlink(path_.c_str());
  }

 private:
  std::string path_;
};

tutti::Place place(const WorldOptions& options, int rank) {
  const int per_node = options.ranks_per_node > 0 ? options.ranks_per_node : options.size;
  const int node = node_of_rank(options, rank);
  return {.rank = rank,
          .size = options.size,
          .local_rank = rank % per_node,
          .local_size = std::min(per_node, options.size - node * per_node),
          .node_rank = node,
          .node_count = node_count(options),
          .root_rank = 0,
          .host = fmt::format("node{}", node)};
}

class ThreadWorld final : public World {
 public:
  ThreadWorld(const WorldOptions& options, const std::string& backend)
      : groups_(static_cast<std::size_t>(options.size)) {
    const TableFile table(options.table);
    const auto store = memory_store();
    on_every_rank([&](int rank) { group(rank) = join_as_thread(options, rank, store, backend); });
  }

  // All leave at the same time: a goodbye waits for the other side's.
  ~ThreadWorld() override {
    on_every_rank([&](int rank) { group(rank) = Group(); });
  }

  [[nodiscard]] int size() const override { return static_cast<int>(groups_.size()); }

  void run(const std::function<void(Group& world)>& body) override {
    on_every_rank([&](int rank) { run_rank(group(rank), body); });
  }

 private:
  template <class Body>
  void on_every_rank(const Body& body) {
    std::vector<std::exception_ptr> errors(groups_.size());
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < size(); ++rank) {
        threads.emplace_back([&, rank] {
          try {
            body(rank);
          } catch (...) {
            errors[static_cast<std::size_t>(rank)] = std::current_exception();
          }
        });
      }
    }
    for (const auto& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

  [[nodiscard]] Group& group(int rank) { return groups_[static_cast<std::size_t>(rank)]; }

  std::vector<Group> groups_;
};

}  // namespace

Group join_as_thread(const WorldOptions& options, int rank, const std::shared_ptr<Store>& store,
                     const std::string& backend) {
  const wire::Secret secret = wire::Secret::from_hex(std::string(64, 'a'));
  auto connector =
      std::make_shared<rendezvous::StoreConnector>(rendezvous::StoreConnector::Parts{.place = place(options, rank),
                                                                                     .description = "ranks as threads",
                                                                                     .meeting_host = "127.0.0.1",
                                                                                     .store = store,
                                                                                     .secret = secret});
  return init(std::move(connector), {.backend = backend, .timeout = options.timeout, .backends = options.backends});
}

std::unique_ptr<World> make_thread_world(const WorldOptions& options, const std::string& backend) {
  return std::make_unique<ThreadWorld>(options, backend);
}

}  // namespace tutti::contract
