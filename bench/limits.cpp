// limits.cpp: how long two processes take to exchange arrays, by each way that bytes can go inside a host.
// SPDX-License-Identifier: Apache-2.0
//
//   limits [BYTES …]      µs per exchange, median of rounds; both directions at once, one row for each size
//
// Each process has an array that the other one gets. Fresh: it is rewritten before each exchange; stale: it is not. Ways:
//   readv   each reads the other's array by process_vm_readv
//   mapped  the arrays lie in memory that both map: each copies from the other's
//   slots   each copies its array into slots that both map, and the other's out of them, piece by piece
//   halves  each pushes one half of its array by process_vm_writev and pulls the other half of the peer's by process_vm_readv
// The two keep to one processor each: the first and the last that they may use.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t slot_bytes = 8 << 10, slots = 16;  // per direction
constexpr const char* ways[] = {"readv", "mapped", "slots", "halves"};

struct alignas(128) Flag {
  std::atomic<std::uint64_t> value;
};

// What both see.
struct Board {
  std::array<Flag, 2> arrived, written, read;
  std::array<std::byte*, 2> in, out;  // in each process's own memory; for `mapped` the same in both
  std::array<pid_t, 2> process;
  alignas(128) std::array<std::array<std::byte, slot_bytes * slots>, 2> slot;
  double us;
};

void* shared(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory that both processes map");
  return memory;
}

void check(ssize_t moved, std::size_t bytes, const char* call) {
  if (moved != static_cast<ssize_t>(bytes)) throw std::runtime_error(fmt::format("{}: {}", call, strerror(errno)));
}

class Side {
 public:
  Side(Board& board, int me, std::size_t bytes) : board_(board), me_(me), peer_(1 - me), bytes_(bytes) {}

  void meet() {
    const std::uint64_t round = ++round_;
    at(board_.arrived, me_).store(round, std::memory_order_release);
    wait(at(board_.arrived, peer_), round);
  }
  void exchange(int way) {
    if (way == 0) return pull(0, bytes_);
    if (way == 1) std::memcpy(own_out(), peer_in(), bytes_);
    if (way == 2) return through_slots();
    if (way == 3) {
      push(bytes_ / 2);
      pull(bytes_ / 2, bytes_ - bytes_ / 2);
    }
  }

 private:
  using Flags = std::array<Flag, 2>;
  static std::atomic<std::uint64_t>& at(Flags& flags, int side) { return flags[static_cast<std::size_t>(side)].value; }
  static void wait(const std::atomic<std::uint64_t>& flag, std::uint64_t least) {
    // With real-time precedence the peer may wait for this very processor before it has one of its own.
    for (int spins = 0; flag.load(std::memory_order_acquire) < least;) {
      if (++spins % 100'000 == 0) sched_yield();
    }
  }
  [[nodiscard]] std::byte* own_in() const { return board_.in[static_cast<std::size_t>(me_)]; }
  [[nodiscard]] std::byte* own_out() const { return board_.out[static_cast<std::size_t>(me_)]; }
  [[nodiscard]] std::byte* peer_in() const { return board_.in[static_cast<std::size_t>(peer_)]; }
  [[nodiscard]] pid_t peer_process() const { return board_.process[static_cast<std::size_t>(peer_)]; }
  void pull(std::size_t offset, std::size_t bytes) {
    const iovec here{own_out() + offset, bytes}, there{peer_in() + offset, bytes};
    check(process_vm_readv(peer_process(), &here, 1, &there, 1, 0), bytes, "process_vm_readv");
  }
  void push(std::size_t bytes) {
    const iovec here{own_in(), bytes}, there{board_.out[static_cast<std::size_t>(peer_)], bytes};
    check(process_vm_writev(peer_process(), &here, 1, &there, 1, 0), bytes, "process_vm_writev");
  }
  // One piece in, one piece out, so that both directions move and no slot is waited for longer than needed.
  void through_slots() {
    const std::size_t pieces = (bytes_ + slot_bytes - 1) / slot_bytes;
    const std::uint64_t base = pieces_;
    for (std::size_t sent = 0, got = 0; got < pieces;) {
      const std::uint64_t freed = at(board_.read, peer_).load(std::memory_order_acquire);
      if (sent < pieces && base + sent < freed + slots) {
        std::memcpy(slot_of(me_, base + sent), own_in() + sent * slot_bytes, length(sent));
        at(board_.written, me_).store(base + ++sent, std::memory_order_release);
      }
      if (at(board_.written, peer_).load(std::memory_order_acquire) <= base + got) continue;
      std::memcpy(own_out() + got * slot_bytes, slot_of(peer_, base + got), length(got));
      at(board_.read, me_).store(base + ++got, std::memory_order_release);
    }
    pieces_ += pieces;
  }
  [[nodiscard]] std::size_t length(std::size_t piece) const {
    return std::min(slot_bytes, bytes_ - piece * slot_bytes);
  }
  [[nodiscard]] std::byte* slot_of(int side, std::uint64_t piece) const {
    return board_.slot[static_cast<std::size_t>(side)].data() + piece % slots * slot_bytes;
  }

  Board& board_;
  int me_, peer_;
  std::size_t bytes_;
  std::uint64_t round_ = 0, pieces_ = 0;
};

void keep_to_one_processor(int side) {
  cpu_set_t usable, own;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &usable)) processors.push_back(i);
  }
  if (processors.size() < 2) throw std::runtime_error("two processors are needed");
  CPU_ZERO(&own);
  CPU_SET(side == 0 ? processors.front() : processors.back(), &own);
  sched_setaffinity(0, sizeof own, &own);
}

std::byte* heap(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  std::memset(memory, 1, bytes);
  return memory;
}

// µs of the slower side, median; wrong bytes end the program.
void run_side(Board& board, int me, std::size_t bytes, int way, bool fresh) {
  using Clock = std::chrono::steady_clock;
  constexpr unsigned seconds_max = 30;
  alarm(seconds_max);
  keep_to_one_processor(me);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  const auto side = static_cast<std::size_t>(me);
  if (way != 1) {
    board.in[side] = heap(bytes);
    board.out[side] = heap(bytes);
  }
  board.process[side] = getpid();
  Side here(board, me, bytes);
  const int rounds = static_cast<int>(std::clamp<std::size_t>((48 << 20) / std::max<std::size_t>(bytes, 1), 12, 400));
  std::vector<double> times;
  int value = 0;
  std::memset(board.in[side], 0, bytes);
  for (int round = 0; round < rounds; ++round) {
    if (fresh) std::memset(board.in[side], value = round % 100, bytes);
    here.meet();
    const auto begin = Clock::now();
    here.exchange(way);
    here.meet();  // until then the other may still read, or write, here
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    if (board.out[side][bytes - 1] != std::byte(value)) throw std::runtime_error("the wrong bytes came");
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  if (me == 0) board.us = times[static_cast<std::size_t>(rounds / 2)];
}

double measure(std::size_t bytes, int way, bool fresh) {
  auto& board = *new (shared(sizeof(Board))) Board{};
  std::vector<std::byte*> mapped;
  if (way == 1) {
    for (int i = 0; i < 4; ++i) mapped.push_back(static_cast<std::byte*>(shared(bytes)));
    board.in = {mapped[0], mapped[1]};
    board.out = {mapped[2], mapped[3]};
  }
  const auto start = [&](int side) {
    const pid_t child = fork();
    if (child != 0) return child;
    try {
      run_side(board, side, bytes, way, fresh);
      _exit(0);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{} of {} bytes: {}\n", ways[way], bytes, error.what());
      _exit(1);
    }
  };
  const pid_t children[] = {start(0), start(1)};
  bool failed = false;
  for (std::size_t left = 2; left > 0; --left) {
    int status = 0;
    const pid_t ended = wait(&status);
    if (status == 0) continue;
    failed = true;  // the other would wait for ever
    for (const pid_t child : children) {
      if (child != ended) kill(child, SIGKILL);
    }
  }
  const double us = failed ? -1 : board.us;
  for (std::byte* one : mapped) munmap(one, bytes);
  munmap(&board, sizeof(Board));
  return us;
}

}  // namespace

int main(int count, char** texts) try {
  std::vector<std::size_t> sizes;
  for (int i = 1; i < count; ++i) sizes.push_back(std::stoul(texts[i]));
  if (sizes.empty()) sizes = {8, 4 << 10, 12'000, 48'000, 100'000, 400'000, 800'000, 3'000'000, 12'000'000, 48'000'000};
  fmt::print("{:>10}", "bytes");
  for (const char* data : {"fresh", "stale"}) {
    for (const char* way : ways) fmt::print(" {:>13}", fmt::format("{} {}", way, data));
  }
  fmt::print("   us\n");
  for (const std::size_t bytes : sizes) {
    fmt::print("{:>10}", bytes);
    for (const bool fresh : {true, false}) {
      for (int way = 0; way < 4; ++way) fmt::print(" {:>13.2f}", measure(bytes, way, fresh));
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "limits: {}\n", error.what());
  return 1;
}
