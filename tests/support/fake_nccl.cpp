// fake_nccl.cpp: NCCL between processes whose GPUs are not there.
// SPDX-License-Identifier: Apache-2.0
//
// Messages go through mailboxes in a file, in pieces, so that they wait for each other as NCCL's do: a call whose peer is gone ends only by
// ncclCommAbort. As NCCL's sockets are closed while the rest of a process that was killed is still being taken down, a process that is stopped
// counts as gone: it no longer answers anyone, and its end is not known yet. TUTTI_TEST_NCCL_FAILS=K: on rank 0, call K of a communicator fails by
// itself; TUTTI_TEST_NCCL_STOPS=K: in call K, rank 1 stops.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "fake_gpu.hpp"

namespace {

constexpr int ok = 0;
constexpr std::size_t piece_bytes = 4096;
constexpr int ranks_max = 16;

struct Mailbox {
  std::atomic<std::uint64_t> written{0}, read{0};  // pieces
  std::array<std::byte, piece_bytes> piece;
};
struct SharedFile {
  std::atomic<int> ranks{0};
  std::atomic<pid_t> processes[ranks_max];
  Mailbox mailbox[ranks_max][ranks_max];  // from, to
};

struct UniqueId {
  std::array<char, 128> bytes;
};

std::string file_of(const UniqueId& id) { return std::string("/dev/shm/") + id.bytes.data(); }

struct Communicator {
  int rank = 0, size = 1;
  SharedFile* shared = nullptr;
  std::string file;
  std::atomic<bool> is_aborted{false}, is_connected{false}, has_lost_a_peer{false};
  std::chrono::steady_clock::time_point looked_at{};
  int calls = 0;
};

/// Whether the process runs, as its state in /proc says.
bool is_running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end != std::string::npos && std::string_view("TZX").find(text[name_end + 2]) == std::string_view::npos;
}

/// Looks every few moments.
void look_at_peers(Communicator& comm) {
  const auto now = std::chrono::steady_clock::now();
  if (now - comm.looked_at < std::chrono::milliseconds(2)) return;
  comm.looked_at = now;
  for (int rank = 0; rank < comm.size; ++rank) {
    if (!is_running(comm.shared->processes[rank])) comm.has_lost_a_peer = true;
  }
}

/// One message, piece by piece.
struct Transfer {
  bool sends = false;
  int peer = 0;
  std::byte* memory = nullptr;
  std::size_t bytes = 0, moved = 0;

  /// Whether something was moved.
  bool advance(const Communicator& comm) {
    Mailbox& box = sends ? comm.shared->mailbox[comm.rank][peer] : comm.shared->mailbox[peer][comm.rank];
    const bool is_full = box.written != box.read;
    if (moved == bytes || is_full == sends) return false;
    const std::size_t length = std::min(piece_bytes, bytes - moved);
    if (sends) std::memcpy(box.piece.data(), memory + moved, length);
    else std::memcpy(memory + moved, box.piece.data(), length);
    ++(sends ? box.written : box.read);
    moved += length;
    return true;
  }
};

/// One step of a group: messages, and what is done with what came.
struct Step {
  std::vector<Transfer> transfers;
  std::function<void()> finish = [] {};
  std::vector<std::shared_ptr<std::vector<std::byte>>> held{};  // memory that the messages use
};

thread_local int depth = 0;
thread_local std::vector<Step> group_steps;
thread_local Communicator* group_comm = nullptr;
thread_local void* group_stream = nullptr;

constexpr int nccl_invalid = 4, nccl_remote_error = 6, nccl_in_progress = 7;

void run(Communicator& comm, std::vector<Step>& steps) {
  // As in NCCL, messages of a group wait for each other only where they are between the same ranks, in the same direction.
  for (;;) {
    bool is_over = true;
    std::array<std::array<bool, 2>, ranks_max> is_taken{};
    for (Step& step : steps) {
      for (Transfer& transfer : step.transfers) {
        if (transfer.moved == transfer.bytes) continue;
        is_over = false;
        bool& taken = is_taken[static_cast<std::size_t>(transfer.peer)][transfer.sends ? 1 : 0];
        if (!std::exchange(taken, true)) transfer.advance(comm);
      }
    }
    if (comm.is_aborted) return;
    if (is_over) break;
    std::this_thread::yield();
  }
  for (Step& step : steps) step.finish();
}

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return text == nullptr ? 0 : std::atoi(text);
}

int end_group() {
  if (group_comm == nullptr || group_steps.empty()) return ok;
  Communicator& comm = *group_comm;
  auto steps = std::make_shared<std::vector<Step>>(std::move(group_steps));
  group_steps.clear();
  group_comm = nullptr;
  ++comm.calls;
  if (comm.rank == 0 && comm.calls == number_in("TUTTI_TEST_NCCL_FAILS")) comm.has_lost_a_peer = true;
  if (comm.rank == 1 && comm.calls == number_in("TUTTI_TEST_NCCL_STOPS")) kill(getpid(), SIGSTOP);
  tutti::fake::enqueue(group_stream, [&comm, steps] { run(comm, *steps); });
  return nccl_in_progress;
}

int add(void* handle, void* stream, Step step) {
  auto* const comm = static_cast<Communicator*>(handle);
  if (!comm->is_connected) return nccl_invalid;
  group_comm = comm;
  group_stream = stream;
  group_steps.push_back(std::move(step));
  return depth > 0 ? ok : end_group();
}

std::size_t size_of(int type) {
  constexpr std::array<std::size_t, 10> sizes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes.at(static_cast<std::size_t>(type));
}

std::byte* bytes_at(const void* memory, std::size_t at) {
  return static_cast<std::byte*>(const_cast<void*>(memory)) + at;
}

struct Combine {
  int op;
  double factor;
  int ranks;

  template <class T>
  void operator()(std::byte* to, const std::vector<std::byte*>& from, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      T sum{};
      for (std::size_t rank = 0; rank < from.size(); ++rank) {
        T value{};
        std::memcpy(&value, from[rank] + i * sizeof(T), sizeof(T));
        if (op >= 5) value = static_cast<T>(static_cast<double>(value) * factor);
        if (rank == 0) sum = value;
        else if (op == 1) sum = static_cast<T>(sum * value);
        else if (op == 2) sum = std::max(sum, value);
        else if (op == 3) sum = std::min(sum, value);
        else sum = static_cast<T>(sum + value);
      }
      if (op == 4) sum = static_cast<T>(static_cast<double>(sum) / ranks);
      std::memcpy(to + i * sizeof(T), &sum, sizeof(T));
    }
  }
};

void combine(int type, const Combine& with, std::byte* to, const std::vector<std::byte*>& from, std::size_t count) {
  switch (type) {
    case 0: return with.operator()<std::int8_t>(to, from, count);
    case 1: return with.operator()<std::uint8_t>(to, from, count);
    case 2: return with.operator()<std::int32_t>(to, from, count);
    case 3: return with.operator()<std::uint32_t>(to, from, count);
    case 4: return with.operator()<std::int64_t>(to, from, count);
    case 5: return with.operator()<std::uint64_t>(to, from, count);
    case 7: return with.operator()<float>(to, from, count);
    case 8: return with.operator()<double>(to, from, count);
    default: std::abort();
  }
}

std::array<double, 64> factors{};

struct Reduction {
  std::size_t begin;  // of what is reduced, in the input
  int root;           // −1: all get it
};

/// Everyone sends what the others reduce, and reduces its part in the order of ranks.
int reduce(const void* from, void* to, std::size_t count, int type, int op, void* handle, void* stream,
           const std::function<Reduction(int rank)>& part) {
  const auto& comm = *static_cast<Communicator*>(handle);
  const std::size_t bytes = count * size_of(type);
  Step step;
  std::vector<std::byte*> sources;
  const Reduction own = part(comm.rank);
  const bool gets = own.root < 0 || own.root == comm.rank;
  for (int rank = 0; rank < comm.size; ++rank) {
    const Reduction theirs = part(rank);
    if (rank != comm.rank && (theirs.root < 0 || theirs.root == rank))
      step.transfers.push_back(
          {.sends = true, .peer = rank, .memory = bytes_at(from, theirs.begin * size_of(type)), .bytes = bytes});
    if (!gets) continue;
    auto source = std::make_shared<std::vector<std::byte>>(bytes);
    sources.push_back(source->data());
    step.held.push_back(source);
    if (rank != comm.rank) step.transfers.push_back({.peer = rank, .memory = source->data(), .bytes = bytes});
  }
  if (gets) {
    const double factor = op >= 5 ? factors[static_cast<std::size_t>(op)] : 1;
    step.finish = [=, size = comm.size, rank = static_cast<std::size_t>(comm.rank)] {
      std::memcpy(sources[rank], bytes_at(from, own.begin * size_of(type)), bytes);
      combine(type, {op, factor, size}, static_cast<std::byte*>(to), sources, count);
    };
  }
  return add(handle, stream, std::move(step));
}

}  // namespace

FAKE int ncclGetVersion(int* version) { return *version = 22809, ok; }
FAKE const char* ncclGetErrorString(int result) {
  if (result == nccl_remote_error) return "remote process exited or there was a network error";
  return result == nccl_invalid ? "invalid argument" : "no error";
}
FAKE const char* ncclGetLastError(void* handle) {
  const auto* const comm = static_cast<Communicator*>(handle);
  return comm != nullptr && comm->has_lost_a_peer ? "socketProgress: Connection closed by remote peer " : "";
}
FAKE int ncclGetUniqueId(UniqueId* id) {
  static std::atomic<int> next{0};
  const std::string name = "tutti_fake_nccl_" + std::to_string(getpid()) + "_" + std::to_string(++next);
  *id = {};
  std::copy(name.begin(), name.end(), id->bytes.begin());
  const int file = open(file_of(*id).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  const int result = ftruncate(file, sizeof(SharedFile));
  close(file);
  return result == 0 ? ok : nccl_invalid;
}
FAKE int ncclCommInitRankConfig(void** handle, int size, UniqueId id, int rank, void*) {
  auto* const comm = new Communicator;
  comm->rank = rank;
  comm->size = size;
  comm->file = file_of(id);
  const int file = open(comm->file.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 || size > ranks_max) return nccl_invalid;
  comm->shared =
      static_cast<SharedFile*>(mmap(nullptr, sizeof(SharedFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  close(file);
  *handle = comm;
  comm->shared->processes[rank] = getpid();
  std::thread([comm] {
    ++comm->shared->ranks;
    while (comm->shared->ranks < comm->size && !comm->is_aborted) std::this_thread::yield();
    unlink(comm->file.c_str());  // all have it
    comm->is_connected = true;
  }).detach();
  return nccl_in_progress;
}
FAKE int ncclCommAbort(void* handle) {
  auto* const comm = static_cast<Communicator*>(handle);
  comm->is_aborted = true;
  unlink(comm->file.c_str());
  return ok;
}
FAKE int ncclCommGetAsyncError(void* handle, int* result) {
  auto& comm = *static_cast<Communicator*>(handle);
  *result = comm.is_connected ? ok : nccl_in_progress;
  if (comm.is_connected) look_at_peers(comm);
  if (comm.has_lost_a_peer) *result = nccl_remote_error;
  return ok;
}
FAKE int ncclRedOpCreatePreMulSum(int* op, void* factor, int type, int, void*) {
  *op = 5;
  float single = 0;
  std::memcpy(&single, factor, sizeof single);
  if (type == 8) std::memcpy(&factors[5], factor, sizeof(double));
  else factors[5] = static_cast<double>(single);
  return ok;
}
FAKE int ncclRedOpDestroy(int, void*) { return ok; }
FAKE int ncclGroupStart() { return ++depth, ok; }
FAKE int ncclGroupEnd() { return --depth == 0 ? end_group() : ok; }
FAKE int ncclSend(const void* from, std::size_t count, int type, int peer, void* comm, void* stream) {
  Step step;
  step.transfers.push_back({.sends = true, .peer = peer, .memory = bytes_at(from, 0), .bytes = count * size_of(type)});
  return add(comm, stream, std::move(step));
}
FAKE int ncclRecv(void* to, std::size_t count, int type, int peer, void* comm, void* stream) {
  Step step;
  step.transfers.push_back({.peer = peer, .memory = bytes_at(to, 0), .bytes = count * size_of(type)});
  return add(comm, stream, std::move(step));
}
FAKE int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int op, void* comm, void* stream) {
  return reduce(from, to, count, type, op, comm, stream, [](int) { return Reduction{0, -1}; });
}
FAKE int ncclReduce(const void* from, void* to, std::size_t count, int type, int op, int root, void* comm,
                    void* stream) {
  return reduce(from, to, count, type, op, comm, stream, [=](int) { return Reduction{0, root}; });
}
FAKE int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int op, void* comm, void* stream) {
  return reduce(from, to, count, type, op, comm, stream, [=](int rank) {
    return Reduction{static_cast<std::size_t>(rank) * count, -1};
  });
}
FAKE int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, void* handle, void* stream) {
  const auto& comm = *static_cast<Communicator*>(handle);
  const std::size_t bytes = count * size_of(type);
  Step step;
  if (comm.rank != root) {
    step.transfers.push_back({.peer = root, .memory = bytes_at(to, 0), .bytes = bytes});
  } else {
    for (int rank = 0; rank < comm.size; ++rank) {
      if (rank != root)
        step.transfers.push_back({.sends = true, .peer = rank, .memory = bytes_at(from, 0), .bytes = bytes});
    }
    step.finish = [=] { std::memmove(to, from, bytes); };
  }
  return add(handle, stream, std::move(step));
}
FAKE int ncclAllGather(const void* from, void* to, std::size_t count, int type, void* handle, void* stream) {
  const auto& comm = *static_cast<Communicator*>(handle);
  const std::size_t bytes = count * size_of(type);
  const std::byte* const own = bytes_at(to, static_cast<std::size_t>(comm.rank) * bytes);
  Step step;
  for (int rank = 0; rank < comm.size; ++rank) {
    if (rank == comm.rank) continue;
    step.transfers.push_back({.sends = true, .peer = rank, .memory = bytes_at(from, 0), .bytes = bytes});
    step.transfers.push_back(
        {.peer = rank, .memory = bytes_at(to, static_cast<std::size_t>(rank) * bytes), .bytes = bytes});
  }
  step.finish = [=] { std::memmove(const_cast<std::byte*>(own), from, bytes); };
  return add(handle, stream, std::move(step));
}
