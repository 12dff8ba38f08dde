// communicator_board.cpp: rank 0's record, broadcast on a communicator.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/communicator_board.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <tutti/dtype.hpp>
#include <tutti/error.hpp>

#include "mpi/communicator.hpp"
#include "mpi/library.hpp"
#include "mpi/process.hpp"
#include "rendezvous/record.hpp"

namespace tutti::mpi {
namespace {

constexpr std::size_t record_bytes_max = 4096;
constexpr Duration nap = std::chrono::microseconds(100);

class CommunicatorBoard final : public rendezvous::Board {
 public:
  CommunicatorBoard(std::shared_ptr<const Library> library, TuttiMpiCommunicator* communicator)
      : library_(std::move(library)), communicator_(communicator) {}

  void post(const rendezvous::RendezvousRecord& record, TimePoint deadline) override {
    const std::string text = record.text();
    auto room = std::make_unique<Room>();
    if (text.size() >= room->size()) throw RendezvousError("the record of rank 0 is too long for a broadcast");
    std::memcpy(room->data(), text.data(), text.size());
    static_cast<void>(broadcast(std::move(room), deadline));
  }
  // There is one record: it comes from this very job.
  rendezvous::RendezvousRecord fetch(TimePoint deadline) override {
    if (!fetched_) fetched_ = rendezvous::RendezvousRecord::parse(broadcast(std::make_unique<Room>(), deadline));
    if (!fetched_) throw RendezvousError("rank 0 broadcast no record of this version; use one version of Tutti");
    return *fetched_;
  }
  [[nodiscard]] bool keeps_secrets() const override { return true; }
  [[nodiscard]] std::string describe() const override { return "the MPI communicator"; }

 private:
  using Room = std::array<char, record_bytes_max>;

  // MPI cannot be told to give a broadcast up: where the others do not come in time, its memory stays.
  std::string broadcast(std::unique_ptr<Room> room, TimePoint deadline) {
    room->back() = 0;
    CallHandle call = make_call(*library_);
    TuttiMpiCollective what{};
    what.kind = TUTTI_MPI_BROADCAST;
    what.dtype = static_cast<int>(DType::uint8);
    what.count = static_cast<int>(room->size());
    what.recv = room->data();
    check(*library_, library_->plugin->start(call.get(), communicator_, &what), "MPI_Ibcast");
    for (int done = 0;;) {
      check(*library_, library_->plugin->test(call.get(), &done), "MPI_Test");
      if (done != 0) return {room->data(), strnlen(room->data(), room->size())};
      if (steady_clock().now() >= deadline) {
        static_cast<void>(room.release());
        static_cast<void>(call.release());
        throw Timeout("the ranks of the MPI communicator did not all call init in time; every one of them must");
      }
      std::this_thread::sleep_for(nap);
    }
  }

  std::shared_ptr<const Library> library_;
  TuttiMpiCommunicator* communicator_;  // never freed: MPI_Finalize does that
  std::optional<rendezvous::RendezvousRecord> fetched_;
};

}  // namespace

namespace {

void check_initialized(const Library& library) {
  int is_initialized = 0;
  check(library, library.plugin->initialized(&is_initialized), "MPI_Initialized");
  if (is_initialized != 0) return;
  throw InvalidArgument(
      fmt::format("init: a communicator was given, but {} is not initialised in this process; call MPI_Init_thread "
                  "first, or set TUTTI_MPI to the MPI of the communicator",
                  library.version));
}

}  // namespace

rendezvous::Detected detect_communicator(const OnCommunicator& what) {
  const Found found = find_library(what.environment);
  if (!found.library) throw InvalidArgument(fmt::format("init: no MPI can be used: {}", describe_problems(found)));
  const Library& library = *found.library;
  if (what.communicator) check_initialized(library);
  Process::self().enter(found.library, what.log);
  TuttiMpiCommunicator* communicator = nullptr;
  check(library,
        what.communicator ? library.plugin->duplicate_fortran(*what.communicator, &communicator)
                          : library.plugin->duplicate_world(&communicator),
        "MPI_Comm_dup");
  rendezvous::Detected detected{.launcher = "an MPI communicator"};
  check(library, library.plugin->place(communicator, &detected.rank, &detected.size), "MPI_Comm_rank");
  if (what.size > 0 && detected.size != what.size) {
    throw Error(
        fmt::format("backend mpi: the job has {} ranks, but {} says that this is rank {} of {}: the job was not "
                    "started by this MPI's launcher",
                    what.size, library.version, detected.rank, detected.size));
  }
  detected.meeting = rendezvous::RecordOnBoard{std::make_shared<CommunicatorBoard>(found.library, communicator)};
  return detected;
}

bool must_precede_pmix(const Environment& environment) {
  const Found found = find_library(environment);
  constexpr std::string_view name = "Open MPI v";
  if (!found.library || !found.library->version.starts_with(name)) return false;
  int major = 0;
  const std::string& version = found.library->version;
  std::from_chars(version.data() + name.size(), version.data() + version.size(), major);
  return major >= 5;
}

}  // namespace tutti::mpi
