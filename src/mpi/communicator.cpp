// communicator.cpp: making a communicator, its rounds, and its end.
// SPDX-License-Identifier: Apache-2.0
#include "mpi/communicator.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include <tutti/error.hpp>

#include "base/start_thread.hpp"

namespace tutti::mpi {
namespace {

/// MPI tells creations apart by their tags alone. Two with the same tag are made one after the other.
class Tags {
 public:
  void take(int tag) {
    std::unique_lock guard(mutex_);
    freed_.wait(guard, [&] { return taken_.insert(tag).second; });
  }
  void give_back(int tag) {
    const std::lock_guard guard(mutex_);
    taken_.erase(tag);
    freed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::set<int> taken_;
};

Tags& tags() {
  static auto* instance = new Tags;  // never destroyed: a thread may wait in MPI until the process ends
  return *instance;
}

}  // namespace

struct Communicator::Opening {
  std::atomic<bool> is_over{false};
  TuttiMpiCommunicator* made = nullptr;
  int code = 0;
};

Communicator::Communicator(Parts parts) : parts_(std::move(parts)), opening_(std::make_shared<Opening>()) {
  start_thread("that makes a communicator", [opening = opening_, parts = parts_] {
    tags().take(parts.tag);
    opening->code = parts.library->plugin->create_group(
        parts.base, parts.ranks.data(), static_cast<int>(parts.ranks.size()), parts.tag, &opening->made);
    tags().give_back(parts.tag);
    opening->is_over.store(true, std::memory_order_release);
  }).detach();
}

// What MPI may still write to outlives it.
Communicator::~Communicator() {
  if (rounds_ && rounds_->is_under_way()) static_cast<void>(rounds_.release());
  for (InFlight& call : kept_) static_cast<void>(new InFlight(std::move(call)));
}

bool Communicator::is_open() {
  if (handle_ != nullptr) return true;
  if (is_closed_) throw Error("MPI has been finalised by the program; leave the job before that");
  if (!opening_->is_over.load(std::memory_order_acquire)) return false;
  check(library(), opening_->code, "MPI_Comm_create_group");
  handle_ = opening_->made;
  rounds_ = std::make_unique<Rounds>(library(), handle_);
  return true;
}

void Communicator::begin_round(const RoundRecord& record) {
  const InsideMpi inside;
  rounds_->begin(record);
}

bool Communicator::ends_round() {
  const InsideMpi inside;
  return rounds_->ends();
}

void Communicator::start(InFlight& flight, const TuttiMpiCollective& collective, std::string_view what) {
  const InsideMpi inside;
  check(library(), library().plugin->start(flight.call.get(), handle_, &collective), what);
  flight.is_under_way = true;
}

bool Communicator::ends(InFlight& flight, std::string_view what) {
  const InsideMpi inside;
  int done = 0;
  check(library(), library().plugin->test(flight.call.get(), &done), what);
  if (done != 0) flight.is_under_way = false;
  return done != 0;
}

void Communicator::keep(std::vector<InFlight>& calls) {
  for (InFlight& call : calls) {
    if (call.is_under_way) kept_.push_back(std::exchange(call, InFlight{}));
  }
}

bool Communicator::ends_kept() {
  std::erase_if(kept_, [this](InFlight& call) { return ends(call, "a call that was given up"); });
  return kept_.empty();
}

bool Communicator::closes() {
  if (is_closed_) return true;
  if (!is_open() || !ends_kept()) return false;
  for (;;) {
    if (is_in_round() && !ends_round()) return false;
    if (is_closing_ && result().lowest == RoundRecord::closing) break;
    is_closing_ = true;
    begin_round({.lowest = RoundRecord::closing, .highest = RoundRecord::closing});
  }
  is_closed_ = true;
  rounds_.reset();
  static_cast<void>(library().plugin->free_communicator(std::exchange(handle_, nullptr)));
  return true;
}

}  // namespace tutti::mpi
