// agent_crew.cpp: preparation in four steps, then frames become what the supervisor listens to.
// SPDX-License-Identifier: Apache-2.0
#include "launch/agent_crew.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/printable.hpp"
#include "launch/reach.hpp"

namespace tutti::launch {
namespace {

constexpr std::size_t input_piece_bytes = std::size_t{32} << 10;
constexpr Duration stop_notice_time = std::chrono::seconds(1);

struct OutputPiece {
  int rank = 0;
  Stream stream = Stream::output;
  std::string bytes = {};
};

OutputPiece read_output(const Frame& frame) {
  ByteReader reader(frame.body, "a frame of output");
  OutputPiece piece{.rank = static_cast<int>(reader.i64()), .stream = static_cast<Stream>(reader.i64() & 1)};
  piece.bytes = reader.string(reader.remaining());
  return piece;
}

}  // namespace

AgentCrew::AgentCrew(JobOrder order) : order_(std::move(order)), links_(order_, 0), hosts_(order_.hosts.size()) {}

// ---- before the start

void AgentCrew::prepare(const Wait& wait) {
  links_.start();
  prepare_until(wait, [this] {
    return std::ranges::all_of(hosts_, [](const HostState& host) { return host.facts.has_value(); });
  });
  for (const HostState& host : hosts_) start_.ranks.push_back(host.facts->ranks);
  start_.interfaces.assign(hosts_.size(), "");
  if (hosts_.size() > 1) choose_network(wait);
  links_.send({.host = 0, .kind = FrameKind::serve, .body = sentence(start_.interfaces[0])});
  prepare_until(wait, [this] { return serving_.has_value(); });
  start_.master_address = hosts_.size() > 1 ? start_.interfaces[0] : "127.0.0.1";
  start_.store =
      wire::HostPort{.host = start_.master_address, .port = static_cast<std::uint16_t>(serving_->at(0))}.text();
  start_.master_port = static_cast<int>(serving_->at(1));
}

void AgentCrew::choose_network(const Wait& wait) {
  ReachTable table;
  std::vector<std::string> names;
  for (std::uint32_t host = 0; host < hosts_.size(); ++host) {
    table.push_back(*hosts_[host].facts);
    names.push_back(name_of(host));
  }
  broadcast(FrameKind::reach, encode(table));
  prepare_until(wait, [this] {
    return std::ranges::all_of(hosts_, [](const HostState& host) { return host.reach.has_value(); });
  });
  std::vector<ReachReport> reports;
  for (const HostState& host : hosts_) reports.push_back(*host.reach);
  const std::vector<wire::HostPort> chosen = choose_addresses(names, table, reports);
  for (std::size_t host = 0; host < chosen.size(); ++host) start_.interfaces[host] = chosen[host].host;
}

void AgentCrew::prepare_until(const Wait& wait, const std::function<bool()>& is_done) {
  std::vector<pollfd> watched;
  while (true) {
    links_.serve();
    while (const auto frame = links_.next()) hear_while_preparing(*frame);
    if (is_done()) return;
    watched.clear();
    links_.watch(watched);
    wait(watched, links_.next_timer());
  }
}

void AgentCrew::hear_while_preparing(const Frame& frame) {
  HostState& host = state_of(frame);
  switch (frame.kind) {
    case FrameKind::refused:
    case FrameKind::host_lost:
      throw HostUnusable(frame.host,
                         fmt::format("host {}: {}", name_of(frame.host), printable_text(read_sentence(frame))));
    case FrameKind::ready: host.facts = decode_host_facts(frame.body); break;
    case FrameKind::reached: {
      ReachReport report = decode_reach_report(frame.body);
      const auto fits = [](const Reach& reach, const HostState& other) {
        return reach.answered.size() == other.facts->addresses.size();
      };
      if (!std::ranges::equal(report, hosts_, fits)) throw MalformedMessage("a report of another table of hosts");
      host.reach = std::move(report);
      break;
    }
    case FrameKind::serving: serving_ = read_numbers(frame, 2); break;
    default: break;
  }
}

AgentCrew::HostState& AgentCrew::state_of(const Frame& frame) {
  if (frame.host >= hosts_.size()) throw MalformedMessage("a frame names a host that is not of this job");
  return hosts_[frame.host];
}

int AgentCrew::first_rank_of(std::uint32_t host) const {
  int first = 0;
  for (std::uint32_t before = 0; before < host; ++before) first += start_.ranks[before];
  return first;
}

std::vector<std::string> AgentCrew::host_of_rank() const {
  std::vector<std::string> names;
  for (std::uint32_t host = 0; host < hosts_.size(); ++host)
    names.insert(names.end(), static_cast<std::size_t>(start_.ranks[host]), std::string(short_name(name_of(host))));
  return names;
}

// ---- afterwards

void AgentCrew::start() {
  broadcast(FrameKind::start, encode(start_));
  if (input_ < 0) links_.send({.host = 0, .kind = FrameKind::input_end});
  close_store_when_unneeded();
}

void AgentCrew::watch(std::vector<pollfd>& into, Room room) const {
  static_cast<void>(room);  // agents send no more than was acknowledged
  links_.watch(into);
  if (input_ >= 0 && input_is_taken_) into.push_back({.fd = input_, .events = POLLIN, .revents = 0});
}

void AgentCrew::serve(CrewListener& listener, Room room) {
  links_.serve();
  while (const auto frame = links_.next()) hear(*frame, listener);
  if (room == Room::some) acknowledge_output();
  close_store_when_unneeded();
  forward_input();
}

void AgentCrew::hear(const Frame& frame, CrewListener& listener) {
  HostState& host = state_of(frame);
  const auto values = [&frame](std::size_t count) { return read_numbers(frame, count); };
  const auto prefixed = [&](const std::string& text) {
    return fmt::format("host {}: {}", name_of(frame.host), printable_text(text));
  };
  switch (frame.kind) {
    case FrameKind::rank_ended: {
      const auto parts = values(3);
      listener.rank_ended(static_cast<int>(parts[0]), static_cast<pid_t>(parts[1]), static_cast<int>(parts[2]));
      break;
    }
    case FrameKind::rank_not_started:
      listener.rank_not_started(static_cast<int>(values(2)[0]), static_cast<int>(values(2)[1]));
      break;
    case FrameKind::output: {
      const OutputPiece piece = read_output(frame);
      host.owed += piece.bytes.size();
      listener.output(piece.rank, piece.stream, piece.bytes);
      break;
    }
    case FrameKind::output_ended:
      listener.output_ended(static_cast<int>(values(2)[0]), static_cast<Stream>(values(2)[1] & 1));
      break;
    case FrameKind::left_behind: listener.left_behind(static_cast<int>(values(1)[0])); break;
    case FrameKind::notice: listener.notice(prefixed(read_sentence(frame))); break;
    case FrameKind::guard_lost:
      listener.part_lost(
          {.kind = Cause::Kind::guard_lost, .process = static_cast<int>(values(1)[0]), .host = name_of(frame.host)});
      break;
    case FrameKind::input_taken: input_is_taken_ = true; break;
    case FrameKind::gone: host.is_gone = true; break;
    case FrameKind::refused:
    case FrameKind::host_lost: lose_host(frame.host, printable_text(read_sentence(frame)), listener); break;
    default: break;
  }
}

void AgentCrew::lose_host(std::uint32_t host, const std::string& why, CrewListener& listener) {
  hosts_[host].is_gone = true;
  const int first = first_rank_of(host);
  listener.part_lost({.kind = Cause::Kind::host_lost, .text = why, .host = name_of(host)});
  for (int rank = first; rank < first + start_.ranks[host]; ++rank) {
    for (const Stream stream : {Stream::output, Stream::error}) listener.output_ended(rank, stream);
  }
}

// Host 0 serves it, and stays for the others.
void AgentCrew::close_store_when_unneeded() {
  if (!is_store_needed_ ||
      !std::all_of(hosts_.begin() + 1, hosts_.end(), [](const HostState& host) { return host.is_gone; }))
    return;
  is_store_needed_ = false;
  links_.send({.host = 0, .kind = FrameKind::close_store});
}

void AgentCrew::acknowledge_output() {
  for (std::uint32_t host = 0; host < hosts_.size(); ++host) {
    HostState& state = hosts_[host];
    if (state.owed == 0) continue;
    links_.send({.host = host, .kind = FrameKind::credit, .body = numbers({static_cast<std::int64_t>(state.owed)})});
    state.owed = 0;
  }
}

// One piece at a time: what rank 0 does not read yet stays where tuttirun got it from.
void AgentCrew::forward_input() {
  if (input_ < 0 || !input_is_taken_ || is_ending_) return;
  pollfd readable{.fd = input_, .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, 0) != 1) return;
  std::array<char, input_piece_bytes> buffer;
  const ssize_t bytes = read(input_, buffer.data(), buffer.size());
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (bytes <= 0) {
    input_ = -1;
    links_.send({.host = 0, .kind = FrameKind::input_end});
    return;
  }
  const auto piece = std::as_bytes(std::span(buffer).first(static_cast<std::size_t>(bytes)));
  links_.send({.host = 0, .kind = FrameKind::input, .body = {piece.begin(), piece.end()}});
  input_is_taken_ = false;
}

bool AgentCrew::is_gone() const {
  return std::ranges::all_of(hosts_, [](const HostState& host) { return host.is_gone; });
}

void AgentCrew::tell_ranks(int rank, const std::string& how) {
  broadcast(FrameKind::news, std::move(ByteWriter().i64(rank).string(how)).take());
}

void AgentCrew::signal_ranks(int signal) { broadcast(FrameKind::signal_ranks, numbers({signal})); }

void AgentCrew::signal_all(int signal) {
  broadcast(FrameKind::signal_all, numbers({signal}));
  // tuttirun stops itself next.
  if (signal == SIGSTOP) links_.flush_until(std::chrono::steady_clock::now() + stop_notice_time);
}

void AgentCrew::end(int signal, Duration grace) {
  is_ending_ = true;
  const auto grace_ms = std::chrono::duration_cast<std::chrono::milliseconds>(grace).count();
  broadcast(FrameKind::end, numbers({signal, grace_ms}));
}

}  // namespace tutti::launch
