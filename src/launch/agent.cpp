// agent.cpp: one loop over the agent's orders, its ranks, and the agents below it.
// SPDX-License-Identifier: Apache-2.0
#include "launch/agent.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"
#include "launch/agent_links.hpp"
#include "launch/attempt.hpp"
#include "launch/cores.hpp"
#include "launch/local_crew.hpp"
#include "launch/master_port.hpp"
#include "launch/rank_environment.hpp"
#include "launch/rank_input.hpp"
#include "launch/reach.hpp"
#include "launch/troubles.hpp"
#include "store/tcp_server.hpp"
#include "wire/loopback.hpp"

namespace tutti::launch {
namespace {

// Of output that tuttirun has not taken yet: little, so that what matters is not queued behind it on a slow link.
constexpr std::size_t unacknowledged_bytes_max = std::size_t{64} << 10;
constexpr Duration reach_time = std::chrono::seconds(5);
constexpr Duration last_words_time = std::chrono::seconds(2);

UniqueFd open_end_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT}) sigaddset(&watched, signal);
  return made(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK), "a descriptor for signals");
}

// The descriptor under another number, where nothing prints to it by mistake and no rank inherits it.
UniqueFd set_aside(int descriptor) {
  UniqueFd moved(fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  dup2(nothing.get(), descriptor);
  return moved;
}

std::string own_path() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).string();
}

// The ranks' environment: that of a login on this host, and over it tuttirun's.
Environment merged_environment(const JobOrder& order) {
  Environment environment = Environment::of_process();
  for (const auto& [name, value] : order.environment) environment.set(name, value);
  return environment;
}

class Agent final : private CrewListener {
 public:
  explicit Agent(std::span<char> title)
      : title_(title), end_signals_(open_end_signals()), tuttirun_(set_aside(STDIN_FILENO), set_aside(STDOUT_FILENO)) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }

  int run() {
    const std::string banner = fmt::format("{}{} {}\n", agent_banner, TUTTI_VERSION, own_path());
    [[maybe_unused]] const ssize_t bytes = write(tuttirun_.out(), banner.data(), banner.size());
    while (!is_over()) {
      wait();
      serve();
    }
    report(FrameKind::gone);
    tuttirun_.flush_until(std::chrono::steady_clock::now() + last_words_time);
    return 0;
  }

 private:
  // ---- the loop

  void wait() {
    watched_.assign({{.fd = end_signals_.get(), .events = POLLIN, .revents = 0},
                     {.fd = is_orphan_ ? -1 : tuttirun_.in(), .events = POLLIN, .revents = 0},
                     {.fd = tuttirun_.has_unsent() ? tuttirun_.out() : -1, .events = POLLOUT, .revents = 0},
                     {.fd = troubles_.fd(), .events = POLLIN, .revents = 0},
                     {.fd = input_.fd(), .events = POLLOUT, .revents = 0}});
    if (links_) links_->watch(watched_);
    if (listeners_) listeners_->watch(watched_);
    if (probe_) probe_->watch(watched_);
    if (crew_) crew_->watch(watched_, may_send() > 0 ? Room::some : Room::none);
    TimePoint wake_at = tuttirun_.said() + beat_interval;
    if (order_ && !is_paused_ && !is_orphan_) wake_at = std::min(wake_at, tuttirun_.heard() + order_->silence);
    if (links_) wake_at = std::min(wake_at, links_->next_timer());
    if (probe_) wake_at = std::min(wake_at, probe_->next_timer());
    poll(watched_.data(), watched_.size(), wire::poll_timeout_ms(std::chrono::steady_clock::now(), wake_at));
  }

  void serve() {
    if (!is_orphan_) hear_tuttirun();
    if (watched_[0].revents != 0) become_orphan();
    if (links_) {
      links_->serve();
      while (auto frame = links_->next()) tuttirun_.send(*frame);
    }
    if (listeners_) listeners_->serve();
    if (probe_) serve_probe();
    if (crew_) crew_->serve(*this, may_send());
    if (input_.write_some()) report(FrameKind::input_taken);
    for (const std::string& text : troubles_.take()) notice(text);
    if (std::chrono::steady_clock::now() - tuttirun_.said() >= beat_interval) report(FrameKind::beat);
  }

  void hear_tuttirun() {
    const bool is_open = tuttirun_.receive();
    while (auto frame = tuttirun_.next()) {
      if (frame->kind == FrameKind::beat) continue;
      if (frame->kind != FrameKind::order && links_) links_->send(*frame);
      if (frame->host == every_host || frame->host == host_ || frame->kind == FrameKind::order) obey(*frame);
    }
    const bool is_silent =
        order_ && !is_paused_ && std::chrono::steady_clock::now() - tuttirun_.heard() > order_->silence;
    if (!is_open || !tuttirun_.flush() || is_silent) become_orphan();
  }

  // The process that started this agent is gone, or wants it to end.
  void become_orphan() {
    if (is_orphan_) return;
    is_orphan_ = true;
    links_.reset();
    end(SIGTERM, order_ ? order_->options.grace : Duration::zero());
  }

  [[nodiscard]] bool is_over() const {
    const bool has_ended = crew_ ? crew_->is_gone() && (crew_->is_drained() || is_orphan_) : is_ending_;
    // Ranks of other hosts may still talk to the store when those of this one have ended.
    const bool serves_others = is_store_needed_ && !is_orphan_ && !is_ending_;
    return has_ended && !serves_others && (!links_ || links_->is_empty());
  }

  [[nodiscard]] std::size_t may_send() const {
    if (is_orphan_) return unacknowledged_bytes_max;  // to nobody, but the ranks must not block
    return unacknowledged_ < unacknowledged_bytes_max ? unacknowledged_bytes_max - unacknowledged_ : 0;
  }

  void report(FrameKind kind, std::vector<std::byte> body = {}) {
    if (!is_orphan_) tuttirun_.send({.host = host_, .kind = kind, .body = std::move(body)});
  }

  // ---- orders

  void obey(const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::order: take_order(frame); break;
      case FrameKind::reach: begin_probe(decode_reach_table(frame.body)); break;
      case FrameKind::serve: or_refuse([&] { serve_store(read_sentence(frame)); }); break;
      case FrameKind::start: or_refuse([&] { start_ranks(decode_start_order(frame.body)); }); break;
      case FrameKind::signal_ranks:
        if (crew_) crew_->signal_ranks(static_cast<int>(read_numbers(frame, 1)[0]));
        break;
      case FrameKind::signal_all: signal_all(static_cast<int>(read_numbers(frame, 1)[0])); break;
      case FrameKind::end: {
        const auto values = read_numbers(frame, 2);
        end(static_cast<int>(values[0]), std::chrono::milliseconds(values[1]));
        break;
      }
      case FrameKind::news: {
        ByteReader reader(frame.body, "news for the ranks");
        const auto rank = static_cast<int>(reader.i64());
        if (crew_) crew_->tell_ranks(rank, reader.string(reader.remaining()));
        break;
      }
      case FrameKind::credit:
        unacknowledged_ -= std::min(unacknowledged_, static_cast<std::size_t>(read_numbers(frame, 1)[0]));
        break;
      case FrameKind::input: input_.add(frame.body); break;
      case FrameKind::input_end: input_.close_when_written(); break;
      case FrameKind::close_store: is_store_needed_ = false; break;
      default: break;
    }
  }

  template <class Action>
  void or_refuse(Action action) {
    try {
      action();
    } catch (const std::exception& error) {
      report(FrameKind::refused, sentence(error.what()));
    }
  }

  void take_order(const Frame& frame) {
    host_ = frame.host;
    order_ = decode_job_order(frame.body);
    links_.emplace(*order_, static_cast<int>(host_) + 1);
    or_refuse([this] {
      links_->start();  // first, so that the hosts below get ready meanwhile
      report(FrameKind::ready, encode(check_host()));
    });
  }

  HostFacts check_host() {
    const RunOptions& options = order_->options;
    environment_ = merged_environment(*order_);
    if (chdir(order_->folder.c_str()) != 0)
      throw UsageError(fmt::format("the folder {} cannot be used: {}; name another with --wdir", order_->folder,
                                   std::generic_category().message(errno)));
    program_ = find_program(options, environment_);
    const int asked = order_->hosts[host_].slots;
    ranks_ = asked > 0 ? asked : usable_processors();
    if (options.binding == Binding::core) processors_ = split_cores(ranks_);
    HostFacts facts{.ranks = ranks_};
    if (order_->hosts.size() == 1) return facts;
    listeners_.emplace(candidate_addresses(wire::list_interfaces(), environment_.get("TUTTI_INTERFACE").value_or("")));
    facts.token = listeners_->token();
    facts.addresses = listeners_->addresses();
    return facts;
  }

  void begin_probe(const ReachTable& table) {
    probe_.emplace(table, host_, std::chrono::steady_clock::now() + reach_time);
    serve_probe();
  }

  void serve_probe() {
    probe_->serve();
    if (!probe_->is_done()) return;
    report(FrameKind::reached, encode(probe_->report()));
    probe_.reset();
  }

  // The first host of a job serves the store: the others have to reach it anyway, and need not reach tuttirun.
  void serve_store(const std::string& host) {
    const auto address = host.empty() ? wire::Address::loopback() : wire::Address::from_numeric(host, 0).value();
    if (host.empty()) wire::require_loopback();
    const int asked = order_->options.master_port;
    master_port_ = asked == 0 ? free_master_port() : given_master_port(asked);
    store_.emplace(TcpStoreServer::Options{.address = address,
                                           .secret = wire::Secret::from_hex(order_->secret),
                                           .encryption = encryption_of_ranks(order_->options, environment_),
                                           .on_trouble = [this](const std::string& text) { troubles_.add(text); }});
    is_store_needed_ = true;
    report(FrameKind::serving, numbers({store_->address().port(), master_port_.port}));
  }

  void start_ranks(const StartOrder& start) {
    listeners_.reset();
    const auto before = start.ranks.begin() + static_cast<std::ptrdiff_t>(host_);
    Placement placement{.ranks_here = ranks_,
                        .first_rank = std::accumulate(start.ranks.begin(), before, 0),
                        .world_size = std::accumulate(start.ranks.begin(), start.ranks.end(), 0),
                        .nodes = static_cast<int>(start.ranks.size()),
                        .node_rank = static_cast<int>(host_),
                        .threads = std::max(1, usable_processors() / ranks_),
                        .master_address = start.master_address,
                        .master_port = start.master_port,
                        .store = start.store,
                        .secret = order_->secret,
                        .job = order_->job,
                        .restart = order_->restart};
    if (!start.interfaces[host_].empty()) environment_.set("TUTTI_INTERFACE", start.interfaces[host_]);
    const Variables common = common_variables(placement, order_->options, environment_);
    UniqueFd reader;
    if (placement.first_rank == 0) reader = input_.open();
    LocalPlan plan{.program = program_,
                   .ranks = ranks_,
                   .first_rank = placement.first_rank,
                   .id = order_->job,
                   .common_environment = common_block(environment_, common),
                   .processors = processors_,
                   .input = reader.get(),
                   .grace = order_->options.grace,
                   .signals = {},
                   .descriptors = make_room_for_pipes(ranks_),
                   .title = title_};
    sigemptyset(&plan.signals.blocked);
    for (int rank = 0; rank < ranks_; ++rank) plan.own_environment.push_back(to_block(own_variables(placement, rank)));
    crew_.emplace(std::move(plan));
    crew_->start();
  }

  void signal_all(int signal) {
    if (crew_) crew_->signal_all(signal);
    // A user who stops the job stops tuttirun, too, and it sends no beats until it goes on.
    is_paused_ = signal == SIGSTOP || (is_paused_ && signal != SIGCONT);
    tuttirun_.count_as_heard(std::chrono::steady_clock::now());
  }

  void end(int signal, Duration grace) {
    is_ending_ = true;
    if (crew_) crew_->end(signal, grace);
  }

  // ---- what the ranks do

  void rank_ended(int rank, pid_t process, int status) override {
    // The ranks of this host hear of it at once, those of others through tuttirun.
    if (status != 0 && !is_ending_)
      crew_->tell_ranks(rank, describe_process_end(process, status, short_name(order_->hosts[host_].name)));
    report(FrameKind::rank_ended, numbers({rank, process, status}));
  }
  void rank_not_started(int rank, int error) override { report(FrameKind::rank_not_started, numbers({rank, error})); }
  void output(int rank, Stream stream, std::string_view bytes) override {
    if (is_orphan_) return;
    unacknowledged_ += bytes.size();
    ByteWriter body;
    body.i64(rank).i64(static_cast<std::int64_t>(stream)).string(bytes);
    report(FrameKind::output, std::move(body).take());
  }
  void output_ended(int rank, Stream stream) override {
    report(FrameKind::output_ended, numbers({rank, static_cast<std::int64_t>(stream)}));
  }
  void part_lost(Cause cause) override { report(FrameKind::guard_lost, numbers({cause.process})); }
  void left_behind(int processes) override { report(FrameKind::left_behind, numbers({processes})); }
  void notice(const std::string& text) override { report(FrameKind::notice, sentence(text)); }

  std::span<char> title_;
  UniqueFd end_signals_;
  FramePipe tuttirun_;  // or the agent that started this one
  std::vector<pollfd> watched_;
  std::uint32_t host_ = every_host;
  std::optional<JobOrder> order_;
  std::optional<AgentLinks> links_;
  Environment environment_;
  Program program_;
  std::vector<cpu_set_t> processors_;
  int ranks_ = 0;
  std::optional<ReachListeners> listeners_;
  std::optional<ReachProbe> probe_;
  Troubles troubles_;  // before the store, whose thread uses it
  std::optional<TcpStoreServer> store_;
  bool is_store_needed_ = false;
  MasterPort master_port_;
  RankInput input_;
  std::optional<LocalCrew> crew_;
  std::size_t unacknowledged_ = 0;
  bool is_orphan_ = false, is_ending_ = false, is_paused_ = false;
};

}  // namespace

int run_agent(std::span<char> title) {
  try {
    take_over_signals();  // before there are threads
    return Agent(title).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace tutti::launch
