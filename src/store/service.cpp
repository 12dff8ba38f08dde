// service.cpp: answers requests, and keeps those that wait for a key.
// SPDX-License-Identifier: Apache-2.0
#include "store/service.hpp"

#include <fmt/format.h>

#include <tutti/error.hpp>

namespace tutti::store {

namespace {

Reply present(Request::Kind kind, std::uint64_t id, const Value& value) {
  // A client that only waits gets no value.
  return {.kind = Reply::Kind::value, .id = id, .value = kind == Request::Kind::wait ? nullptr : value};
}

bool may_change(Request::Kind kind) {
  return kind == Request::Kind::set || kind == Request::Kind::add || kind == Request::Kind::compare_set;
}

}  // namespace

std::vector<Service::Answer> Service::handle(ClientId client, Request request) {
  std::vector<Answer> answers;
  if (request.kind == Request::Kind::cancel) {
    cancel(client, request.id);
    return answers;
  }
  const bool waits = request.kind == Request::Kind::get || request.kind == Request::Kind::wait;
  if (waits && !table_.find(request.key)) {
    park(client, request);
    return answers;
  }
  if (request.kind == Request::Kind::set) {
    table_.set(request.key, std::make_shared<const std::string>(std::move(request.value)));
  }
  answers.push_back({client, answer(request)});
  if (may_change(request.kind)) wake(request.key, answers);
  return answers;
}

Reply Service::answer(const Request& request) {
  const Reply absent{.kind = Reply::Kind::absent, .id = request.id};
  const auto number = [&](std::int64_t value) {
    return Reply{.kind = Reply::Kind::number, .id = request.id, .number = value};
  };
  try {
    switch (request.kind) {
      case Request::Kind::get:
      case Request::Kind::wait:
      case Request::Kind::try_get: {
        const Value value = table_.find(request.key);
        return value ? present(request.kind, request.id, value) : absent;
      }
      case Request::Kind::add: return number(table_.add(request.key, request.amount));
      case Request::Kind::compare_set: {
        const Value value = table_.compare_set(request.key, request.expected, request.value).value;
        return value ? present(request.kind, request.id, value) : absent;
      }
      case Request::Kind::remove: return number(table_.remove(request.key) ? 1 : 0);
      case Request::Kind::set:
      case Request::Kind::cancel: break;
    }
    return number(0);
  } catch (const InvalidArgument& error) {
    return {.kind = Reply::Kind::refused, .id = request.id, .value = std::make_shared<const std::string>(error.what())};
  }
}

void Service::park(ClientId client, const Request& request) {
  const auto [entry, fresh] = parked_[client].emplace(request.id, request.key);
  if (!fresh) throw MalformedMessage(fmt::format("a client of the store waits twice under the id {}", request.id));
  waiters_[request.key].push_back({client, request.id, request.kind});
}

void Service::wake(const std::string& key, std::vector<Answer>& answers) {
  const auto waiting = waiters_.find(key);
  if (waiting == waiters_.end()) return;
  const Value value = table_.find(key);
  if (!value) return;  // what was asked for was refused
  for (const Waiter& waiter : waiting->second) {
    answers.push_back({waiter.client, present(waiter.kind, waiter.id, value)});
    const auto parked = parked_.find(waiter.client);
    parked->second.erase(waiter.id);
    if (parked->second.empty()) parked_.erase(parked);
  }
  waiters_.erase(waiting);
}

void Service::drop_waiter(const std::string& key, ClientId client, std::uint64_t id) {
  const auto waiting = waiters_.find(key);
  std::erase_if(waiting->second, [&](const Waiter& waiter) { return waiter.client == client && waiter.id == id; });
  if (waiting->second.empty()) waiters_.erase(waiting);
}

void Service::cancel(ClientId client, std::uint64_t id) {
  const auto parked = parked_.find(client);
  if (parked == parked_.end()) return;
  const auto entry = parked->second.find(id);
  if (entry == parked->second.end()) return;  // the answer is on its way already
  drop_waiter(entry->second, client, id);
  parked->second.erase(entry);
  if (parked->second.empty()) parked_.erase(parked);
}

void Service::gone(ClientId client) {
  const auto parked = parked_.find(client);
  if (parked == parked_.end()) return;
  for (const auto& [id, key] : parked->second) drop_waiter(key, client, id);
  parked_.erase(parked);
}

std::vector<Service::Asked> Service::rebuilding() const {
  std::vector<Asked> requests;
  for (const auto& [key, value] : table_.values())
    requests.push_back({0, {.kind = Request::Kind::set, .key = key, .value = *value}});
  for (const auto& [key, waiting] : waiters_) {
    for (const Waiter& waiter : waiting)
      requests.push_back({waiter.client, {.kind = waiter.kind, .id = waiter.id, .key = key}});
  }
  return requests;
}

std::size_t Service::parked_count() const {
  std::size_t count = 0;
  for (const auto& [key, waiting] : waiters_) count += waiting.size();
  return count;
}

}  // namespace tutti::store
