// init.cpp: joining a job, and leaving it.
// SPDX-License-Identifier: Apache-2.0
//
// The ranks exchange one record each through the connector: where they listen, which host and node they are on, and (rank 0's)
// the world's number and the table by which algorithms are chosen. A barrier over the new links ends it: from then on nobody
// needs the connector's store any more, and a link that cannot be opened shows now, with its rank, not in the first call.
#include <tutti/init.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <system_error>

#include <tutti/error.hpp>

#include "base/backend_names.hpp"
#include "base/environment.hpp"
#include "base/start_thread.hpp"
#include "group/asked_backend.hpp"
#include "group/core.hpp"
#include "group/current_world.hpp"
#include "group/group_backend.hpp"
#include "group/launcher_news.hpp"
#include "group/life.hpp"
#include "group/local_peer_setup.hpp"
#include "group/meet.hpp"
#include "group/open_recorder.hpp"
#include "group/own_address.hpp"
#include "group/rank_record.hpp"
#include "group/runtime.hpp"
#include "group/share_memory.hpp"
#include "group/ucx_setup.hpp"
#include "link/alone_link.hpp"
#include "link/ring_link.hpp"
#include "link/tcp_link.hpp"
#include "messages/messages.hpp"
#include "mpi/join.hpp"
#include "wire/secret.hpp"

namespace tutti {
namespace {

std::uint64_t random_word() {
  std::uint64_t word = 0;
  wire::fill_random(std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

link::TcpOptions tcp_options(const Place& place, const Environment& environment) {
  link::TcpOptions options;
  options.encryption = wire::encryption_from(environment);
  // On one machine payloads go from memory to memory: no network can damage them, and a checksum would cost a fifth of the speed. TLS
  // finds every change by itself.
  options.payload_checksums = place.node_count > 1 && options.encryption == wire::Encryption::none;
  if (const auto streams = environment.integer("TUTTI_TCP_STREAMS", 0, 64))
    options.streams = static_cast<int>(*streams);
  if (const auto checksums = environment.flag("TUTTI_TCP_CHECKSUMS")) options.payload_checksums = *checksums;
  if (const auto name = environment.get("TUTTI_TCP_CONGESTION")) options.socket.congestion_control = *name;
  return options;
}

/// How long a broken link may wait for the launcher to say that, and how, the process behind it has ended: an agent tells tuttirun, which tells
/// the agents of all hosts.
constexpr Duration launcher_word = std::chrono::milliseconds(400);

control::ControlOptions control_options(const Environment& environment) {
  control::ControlOptions options;
  constexpr int seconds_max = 24 * 3600;
  if (const auto seconds = environment.integer("TUTTI_SILENCE_SECONDS", 1, seconds_max))
    options.silence = std::chrono::seconds(*seconds);
  return options;
}

/// The table rank 0 hands to all: the built-in cost model, or a user's own file. Read here, so that a bad one is named at once.
Table own_table(const Environment& environment) {
  const auto path = environment.get("TUTTI_TABLE");
  if (!path) return {};
  std::ifstream file(*path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw InvalidArgument(fmt::format("TUTTI_TABLE={}: the file cannot be read", *path));
  return table_from_text(text);
}

struct Joining {
  Connector& connector;
  const Environment& environment;
  std::string backend;
  const Log& log;
  TimePoint deadline;
};

/// What all ranks' notes say, by rank.
struct RankRecords {
  std::vector<wire::Address> addresses{};
  std::vector<std::string> hosts{}, backends{}, memory{}, ucx{};
  std::vector<ProcessIdentity> processes{};
  std::vector<int> nodes{};
  std::uint64_t world = 0;
  Table table{};
};

RankRecords exchange_records(const RankRecord& own, const Joining& joining) {
  RankRecords records;
  for (const std::string& text : joining.connector.exchange(encode(own), joining.deadline)) {
    const RankRecord record = decode_rank_record(text);
    const wire::HostPort where = wire::HostPort::parse(record.address);
    const auto address = wire::Address::from_numeric(where.host, where.port);
    if (!address)
      throw RendezvousError(fmt::format("a rank announced {} as its address, which is not one", record.address));
    records.addresses.push_back(*address);
    records.hosts.push_back(record.host);
    records.nodes.push_back(record.node);
    records.backends.push_back(record.backend);
    records.memory.push_back(record.memory);
    records.ucx.push_back(record.ucx);
    records.processes.push_back(identity_from_text(record.process));
    if (record.world == 0) continue;
    records.world = record.world;
    records.table = table_from_text(record.table);
  }
  check_backends(records.backends);
  return records;
}

wire::Secret secret_of(const Connector& connector) {
  const std::span<const char, wire::Secret::size_bytes> secret(connector.secret().data(), wire::Secret::size_bytes);
  return wire::Secret(std::as_bytes(secret));
}

/// More ranks than processors that they may use. One that is bound to a single processor has it to itself, most likely.
bool is_oversubscribed(const Place& place) {
  int processors = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1) processors = CPU_COUNT(&allowed);
  return place.local_size > processors;
}

/// All messages through UCX, if the ranks have agreed on it. Otherwise between local peers through shared memory, if they share it.
std::unique_ptr<Transport> make_transport(link::TcpSetup setup, std::unique_ptr<Link> ucx, LocalPeerSetup near,
                                          const link::RingOptions& options) {
  messages::MessagesSetup parts{
      .rank = setup.rank, .size = static_cast<int>(setup.table.size()), .clock = steady_clock()};
  parts.network = std::make_unique<link::TcpLink>(std::move(setup));
  if (ucx) {
    parts.local.assign(static_cast<std::size_t>(parts.size), true);
    parts.local_link = std::move(ucx);
  } else if (near.local_peers != nullptr) {
    for (const std::uint64_t offset : near.control_blocks) {
      parts.local.push_back(offset != link::no_control_block_offset);
    }
    parts.local_link =
        std::make_unique<link::RingLink>(link::RingSetup{.local_peers = std::move(near.local_peers),
                                                         .control_blocks = std::move(near.control_blocks),
                                                         .options = options});
  }
  return std::make_unique<messages::Messages>(std::move(parts));
}

Runtime::Parts meet(const Joining& joining, std::uint64_t& world) {
  const Place& place = joining.connector.place();
  // Messages do not go through MPI, and with ucx all go through UCX.
  const bool is_open = joining.backend == "mpi" || is_gpu_backend(joining.backend);
  const std::string sharing = is_open ? "auto" : joining.backend == "ucx" ? "native" : joining.backend;
  UcxJoining ucx(joining.backend, place, joining.environment);
  const OwnMemory memory = make_memory(sharing, place, joining.environment);
  const link::TcpOptions options = tcp_options(place, joining.environment);
  wire::Listener listener =
      link::open_listener(find_own_address(joining.connector, joining.environment, joining.deadline), options);
  RankRecord own{.address = listener.address().text(),
                 .host = place.host,
                 .node = place.node_rank,
                 .backend = joining.backend,
                 .memory = to_record(memory),
                 .process = to_text(own_identity()),
                 .ucx = ucx.record()};
  if (place.rank == place.root_rank) {
    own.world = random_word() | 1;
    own.table = to_text(own_table(joining.environment));
  }
  RankRecords records = exchange_records(own, joining);
  world = records.world;
  const bool may_share = sharing != "native";
  const auto ring_options = link::ring_options_for(place.local_size, is_oversubscribed(place));
  LocalPeerSetup near;
  if (may_share) {
    near = find_local_peers(memory, {.connector = joining.connector,
                                     .backend = sharing,
                                     .node_of = records.nodes,
                                     .memory_records = records.memory,
                                     .ring_bytes = ring_options.ring_bytes,
                                     .log = joining.log,
                                     .deadline = joining.deadline});
  }
  auto through_ucx = ucx.make_link(
      {.records = records.ucx, .nodes = records.nodes, .secret = secret_of(joining.connector), .world = world},
      joining.log);
  Runtime::Parts parts;
  parts.hosts = std::move(records.hosts);
  parts.node_of = std::move(records.nodes);
  parts.table = std::move(records.table);
  parts.control = control_options(joining.environment);
  parts.control.life = [processes = std::move(records.processes), self = own_identity()](int rank) {
    return life_of(processes[static_cast<std::size_t>(rank)], self);
  };
  parts.launcher = LauncherNews::open_pipe(joining.environment);
  if (parts.launcher) parts.control.verdicts.launcher_word = launcher_word;
  parts.may_share_memory = may_share;
  parts.local_peers = near.local_peers;
  parts.may_read_local_peers = near.cross_memory;
  if (near.local_peers) parts.memory = shm::Memory::of(memory.arena);
  parts.transport = make_transport({.rank = place.rank,
                                    .listener = std::move(listener),
                                    .table = std::move(records.addresses),
                                    .secret = secret_of(joining.connector),
                                    .clock = steady_clock(),
                                    .world = world,
                                    .options = options,
                                    .log = joining.log},
                                   std::move(through_ucx), std::move(near), ring_options);
  return parts;
}

/// All runtimes of this process, so that a forked child can close what it inherited.
struct Registry {
  std::mutex mutex;
  std::list<std::weak_ptr<Runtime>> runtimes;
  std::weak_ptr<GroupCore> world;
  bool is_fork = false;  // this process is one of a process that had joined a job
};

Registry& registry() {
  static auto* instance = new Registry;  // never destroyed: groups may outlive static objects
  return *instance;
}

// A fork waits for no call: the thread may be inside one itself, in a reduction of the program's own or a signal's handler, and another
// that is may wait for what this one holds (Python's lock).
void before_fork() { registry().mutex.lock(); }

void after_fork() { registry().mutex.unlock(); }

void in_forked_child() {
  Registry& here = registry();
  for (const auto& weak : here.runtimes) {
    const auto runtime = weak.lock();
    if (runtime == nullptr) continue;
    here.is_fork |= !runtime->has_left();
    runtime->abandon();  // one that has left, too: its memory is not mapped here, and groups are handles to it
  }
  here.runtimes.clear();
  here.world.reset();
  after_fork();
}

/// A group that main() holds is not destroyed by exit(): the others would see a loss instead of a goodbye.
void leave_at_exit() {
  std::vector<std::shared_ptr<Runtime>> all;
  {
    const std::lock_guard guard(registry().mutex);
    for (const auto& weak : registry().runtimes) {
      if (auto runtime = weak.lock()) all.push_back(std::move(runtime));
    }
  }
  for (const auto& runtime : all) runtime->leave_at_exit();
}

void enroll(const std::shared_ptr<Runtime>& runtime) {
  static const int installed = pthread_atfork(before_fork, after_fork, in_forked_child) | std::atexit(leave_at_exit);
  (void)installed;
  const std::lock_guard guard(registry().mutex);
  registry().runtimes.remove_if([](const auto& weak) { return weak.expired(); });
  registry().runtimes.push_back(runtime);
}

void start(Runtime& runtime) {
  try {
    runtime.start();
  } catch (const std::system_error& error) {
    throw Error(fmt::format("cannot start the thread that moves messages: {}", why_not_started(error.code().value())));
  }
}

void check_not_forked() {
  const std::lock_guard guard(registry().mutex);
  if (!registry().is_fork) return;
  throw InvalidArgument(
      "init: this process is a fork of one that has joined a job, and would take that one's place in it; start "
      "processes "
      "for a job with tuttirun or spawn, or fork before init()");
}

}  // namespace

Group init(std::shared_ptr<Connector> connector, const InitOptions& options) {
  check_not_forked();
  const Environment environment = Environment::of_process();
  const std::string backend = backend_from(options, environment);
  const Place place = connector->place();
  const TimePoint deadline = deadline_after(steady_clock().now(), options.timeout);
  const Log log = Log(Log::level_from(environment)).for_rank(place.rank);
  std::uint64_t world = 1;
  BackendFactory through_mpi;
  if (backend == "mpi" && place.size > 1) {
    through_mpi = mpi::join({.connector = *connector,
                             .environment = environment,
                             .communicator = options.mpi_communicator,
                             .log = log,
                             .deadline = deadline});
  }
  Runtime::Parts parts;
  if (place.size == 1) {
    parts.transport = std::make_unique<messages::Messages>(
        messages::MessagesSetup{.clock = steady_clock(), .network = std::make_unique<link::AloneLink>(steady_clock())});
    parts.hosts = {place.host};
    parts.node_of = {0};
    parts.table = own_table(environment);
  } else {
    parts = meet(
        {.connector = *connector, .environment = environment, .backend = backend, .log = log, .deadline = deadline},
        world);
  }
  parts.clock = &steady_clock();
  parts.default_timeout = options.timeout;
  parts.backends = options.backends;
  parts.mpi = std::move(through_mpi);
  if (const auto after = environment.duration("TUTTI_STALL_WARNING")) parts.stall_warning = *after;
  parts.seed = random_word();
  parts.recorder = open_recorder(environment, place, place.size == 1 ? random_word() : world);
  parts.log = log;
  parts.oversubscribed = is_oversubscribed(place);
  parts.fails_at_exit = true;

  GroupFacts facts{.rank = place.rank, .size = place.size, .id = world, .node_of = parts.node_of};
  for (int rank = 0; rank < place.size; ++rank) facts.world_of.push_back(rank);
  if (place.node_count == 1) facts.node_of.clear();
  auto runtime = std::make_shared<Runtime>(std::move(parts));
  enroll(runtime);
  auto core = GroupCore::make(runtime, std::move(facts), runtime->parts().table,
                              GroupBackend{.name = is_gpu_backend(backend) ? backend : std::string()});
  start(*runtime);
  if (!share_memory(core, options.timeout)) Group(core).barrier({.timeout = options.timeout});
  log_backend(*core, true);
  return Group(std::move(core));
}

std::shared_ptr<GroupCore> current_world() {
  const std::lock_guard guard(registry().mutex);
  return registry().world.lock();
}

Group init(const InitOptions& options) {
  if (auto core = current_world()) return Group(std::move(core));
  Group world = init(connect_as_asked(options), options);
  const std::lock_guard guard(registry().mutex);
  registry().world = world.core();
  return world;
}

std::shared_ptr<Store> job_store() {
  if (auto core = current_world()) return job_store(Group(std::move(core)));
  throw InvalidArgument("job_store: this process has not joined a job; call init() first");
}

void finalize() {
  std::shared_ptr<GroupCore> core;
  {
    const std::lock_guard guard(registry().mutex);
    core = registry().world.lock();
    registry().world.reset();
  }
  if (!core) return;
  core->runtime().leave();
  if (const auto error = core->runtime().take_leave_error()) std::rethrow_exception(error);
}

}  // namespace tutti
