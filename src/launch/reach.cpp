// reach.cpp: listeners, connections, and the choice that follows from them.
// SPDX-License-Identifier: Apache-2.0
#include "launch/reach.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"
#include "wire/secret.hpp"

namespace tutti::launch {
namespace {

constexpr std::size_t candidates_max = 8;
constexpr std::size_t connections_max = 128;  // at once
constexpr std::size_t answered_max = 1024;

std::string make_token() {
  std::array<std::byte, token_bytes> random;
  wire::fill_random(random);
  return {reinterpret_cast<const char*>(random.data()), random.size()};
}

// Lower is better.
int standing(const wire::Interface& interface) {
  if (interface.address.is_loopback()) return 6;
  const int kind = wire::is_virtual_interface(interface.name) ? 2 : 0;
  return kind + (interface.address.family() == AF_INET ? 0 : 1);
}

bool every_other_reaches(const std::vector<ReachReport>& reports, std::size_t host, std::size_t address) {
  for (std::size_t from = 0; from < reports.size(); ++from) {
    if (from != host && !reports[from][host].answered[address]) return false;
  }
  return true;
}

[[noreturn]] void throw_unreached(const std::vector<std::string>& names, const ReachTable& table,
                                  const std::vector<ReachReport>& reports, std::size_t host) {
  for (std::size_t from = 0; from < reports.size(); ++from) {
    const Reach& reach = reports[from][host];
    if (from == host || std::ranges::count(reach.answered, true) > 0) continue;
    throw UsageError(fmt::format(
        "host {} does not reach host {} at any of its {} addresses; at {}: {}. Ranks need every port between the "
        "hosts: open "
        "the firewall, or choose another network with TUTTI_INTERFACE",
        names[from], names[host], table[host].addresses.size(), table[host].addresses.front(), reach.problem));
  }
  throw UsageError(
      fmt::format("no address of host {} is reached by all hosts (it has {}); choose a network with "
                  "TUTTI_INTERFACE",
                  names[host], fmt::join(table[host].addresses, ", ")));
}

}  // namespace

std::vector<wire::Address> candidate_addresses(const std::vector<wire::Interface>& interfaces,
                                               const std::string& wish) {
  if (!wish.empty()) return {wire::choose_address(interfaces, {.wish = wish})};
  std::vector<wire::Interface> usable;
  std::ranges::copy_if(interfaces, std::back_inserter(usable), [](const wire::Interface& one) {
    return one.up && !one.address.is_link_local() && !one.address.is_any();
  });
  std::ranges::stable_sort(usable, {}, standing);
  std::vector<wire::Address> addresses;
  for (const wire::Interface& one : usable) addresses.push_back(one.address);
  if (addresses.size() > candidates_max) addresses.resize(candidates_max);
  return addresses;
}

ReachListeners::ReachListeners(const std::vector<wire::Address>& candidates) : token_(make_token()) {
  std::string problem = "it has no network interface that is up";
  for (const wire::Address& address : candidates) {
    try {
      listeners_.emplace_back(address.with_port(0));
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  if (listeners_.empty()) throw RendezvousError(fmt::format("its ranks could listen nowhere: {}", problem));
}

std::vector<std::string> ReachListeners::addresses() const {
  std::vector<std::string> texts;
  for (const wire::Listener& listener : listeners_) texts.push_back(listener.address().text());
  return texts;
}

void ReachListeners::watch(std::vector<pollfd>& into) const {
  for (const wire::Listener& listener : listeners_)
    into.push_back({.fd = listener.fd(), .events = POLLIN, .revents = 0});
}

void ReachListeners::serve() {
  for (wire::Listener& listener : listeners_) {
    while (auto accepted = listener.accept()) {
      wire::write_some(accepted->socket.get(),
                       std::as_bytes(std::span(token_)));  // a fresh socket has room for 16 bytes
      answered_.push_back(std::move(accepted->socket));
      if (answered_.size() > answered_max) answered_.pop_front();
    }
  }
}

ReachProbe::ReachProbe(const ReachTable& table, std::size_t own_host, TimePoint deadline)
    : table_(table), deadline_(deadline), report_(table.size()) {
  // Each host begins with another one, so that not all connect to the first at once.
  for (std::size_t step = 0; step < table.size(); ++step) {
    const std::size_t host = (own_host + step) % table.size();
    report_[host].answered.assign(table[host].addresses.size(), host == own_host);
    for (std::size_t address = 0; host != own_host && address < table[host].addresses.size(); ++address)
      attempts_.push_back({.host = host, .address = address});
  }
  start_more();
}

void ReachProbe::start_more() {
  while (next_ < attempts_.size() && running_.size() < connections_max) {
    const Attempt attempt = attempts_[next_++];
    const auto where = wire::HostPort::parse(table_[attempt.host].addresses[attempt.address]);
    const auto address = wire::Address::from_numeric(where.host, where.port);
    if (!address) {
      fail(attempt, "it is no address");
      continue;
    }
    running_.push_back({.attempt = attempt, .connecting = wire::Connecting(*address)});
  }
}

void ReachProbe::watch(std::vector<pollfd>& into) const {
  for (const Running& running : running_) {
    const bool is_connected = static_cast<bool>(running.socket);
    into.push_back({.fd = is_connected ? running.socket.get() : running.connecting.fd(),
                    .events = static_cast<short>(is_connected ? POLLIN : POLLOUT),
                    .revents = 0});
  }
}

void ReachProbe::serve() {
  std::erase_if(running_, [this](Running& running) { return advance(running); });
  if (std::chrono::steady_clock::now() >= deadline_) {
    for (const Running& running : running_) fail(running.attempt, "nothing answered");
    running_.clear();
    for (; next_ < attempts_.size(); ++next_) fail(attempts_[next_], "there was no time to try it");
  }
  start_more();
}

bool ReachProbe::advance(Running& running) {
  if (!running.socket) {
    switch (running.connecting.check()) {
      case wire::Connecting::State::pending: return false;
      case wire::Connecting::State::failed:
        fail(running.attempt, describe_system_error(running.connecting.error()));
        return true;
      case wire::Connecting::State::connected: running.socket = running.connecting.take(); break;
    }
  }
  std::array<std::byte, token_bytes> buffer;
  const wire::Transfer read =
      wire::read_some(running.socket.get(), std::span(buffer).first(token_bytes - running.heard.size()));
  if (read.moved()) running.heard.append(reinterpret_cast<const char*>(buffer.data()), read.bytes);
  if (running.heard.size() == token_bytes) {
    if (running.heard == table_[running.attempt.host].token) {
      report_[running.attempt.host].answered[running.attempt.address] = true;
    } else {
      fail(running.attempt, "another host answered");
    }
    return true;
  }
  if (read.closed()) fail(running.attempt, read.reason());
  return read.closed();
}

// The best address is the one that people want to know about.
void ReachProbe::fail(const Attempt& attempt, const std::string& why) {
  if (attempt.address == 0) report_[attempt.host].problem = why;
}

std::vector<wire::HostPort> choose_addresses(const std::vector<std::string>& names, const ReachTable& table,
                                             const std::vector<ReachReport>& reports) {
  std::vector<wire::HostPort> chosen;
  for (std::size_t host = 0; host < table.size(); ++host) {
    const std::vector<std::string>& addresses = table[host].addresses;
    std::size_t address = 0;
    while (address < addresses.size() && !every_other_reaches(reports, host, address)) ++address;
    if (address == addresses.size()) throw_unreached(names, table, reports, host);
    chosen.push_back(wire::HostPort::parse(addresses[address]));
  }
  return chosen;
}

}  // namespace tutti::launch
