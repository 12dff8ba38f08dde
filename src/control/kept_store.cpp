// kept_store.cpp: requests that take effect once, and everything about them as bytes.
// SPDX-License-Identifier: Apache-2.0
#include "control/kept_store.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/bytes.hpp"

namespace tutti::control {

namespace {

using Kind = store::Request::Kind;

store::Service::ClientId client_of(int rank) { return static_cast<store::Service::ClientId>(rank); }

store::Request to_request(const StoreAsked& message) {
  return {.kind = message.kind,
          .id = message.id,
          .key = message.key,
          .expected = message.has_expected ? std::optional(message.expected) : std::nullopt,
          .value = message.value,
          .amount = message.amount};
}

StoreAnswered to_message(const store::Reply& reply) {
  return {
      .kind = reply.kind, .id = reply.id, .value = reply.value ? *reply.value : std::string(), .number = reply.number};
}

// The records are control messages, so that they are checked as those are.
std::vector<std::byte> record_of(int rank, RoutedBody body) {
  return control::encode(Routed{rank, 0, 0, std::move(body)});
}

template <class Body>
std::pair<int, Body> read_record(ByteReader& in, int world_size) {
  constexpr std::size_t record_bytes_max = 4 * store_bytes_max;
  Message message = control::decode(in.blob_view(record_bytes_max), world_size);
  auto* const routed = std::get_if<Routed>(&message);
  auto* const body = routed != nullptr ? std::get_if<Body>(&routed->body) : nullptr;
  if (body == nullptr) throw MalformedMessage("the job's store arrived with a record of another kind");
  return {routed->origin, std::move(*body)};
}

}  // namespace

std::vector<KeptStore::Answer> KeptStore::handle(int from, const StoreAsked& message) {
  Served& served = served_[from][message.slot];
  if (message.id < served.id) return {};  // a late repetition: its rank has the answer, or does not wait for it
  if (message.kind == Kind::cancel || (message.id > served.id && served.answer.waits)) {
    (void)service_.handle(client_of(from), {.kind = Kind::cancel, .id = served.id});
    served.answer.waits = false;
  }
  if (message.kind == Kind::cancel) {
    served.id = message.id;
    return {};
  }
  if (message.id == served.id) return {{from, served.answer}};
  return serve(from, message, served);
}

// A change answers its own request, and those of all ranks that wait for the key, perhaps the same rank's.
std::vector<KeptStore::Answer> KeptStore::serve(int from, const StoreAsked& message, Served& served) {
  served = {.id = message.id, .answer = {.waits = true, .id = message.id}};
  std::vector<Answer> answers;
  for (const auto& [client, reply] : service_.handle(client_of(from), to_request(message))) {
    const int rank = static_cast<int>(client);
    for (auto& [slot, each] : served_[rank]) {
      if (each.id != reply.id) continue;
      each.answer = to_message(reply);
      answers.push_back({rank, each.answer});
    }
  }
  if (answers.empty()) answers.push_back({from, served.answer});
  return answers;
}

// A late repetition of a request that has taken effect may still be under way: its id stays.
void KeptStore::forget_answers(int rank) {
  service_.gone(client_of(rank));
  const auto found = served_.find(rank);
  if (found == served_.end()) return;
  for (auto& [slot, served] : found->second) served.answer = {};
}

std::vector<int> KeptStore::clients() const {
  std::vector<int> ranks;
  for (const auto& [rank, slots] : served_) ranks.push_back(rank);
  return ranks;
}

std::vector<std::byte> KeptStore::encode() const {
  ByteWriter out;
  const auto requests = service_.rebuilding();
  out.u64(requests.size());
  for (const auto& [client, request] : requests) {
    out.blob(record_of(static_cast<int>(client),
                       StoreAsked{.kind = request.kind, .id = request.id, .key = request.key, .value = request.value}));
  }
  for (const auto& [rank, slots] : served_) {
    for (const auto& [slot, served] : slots) {
      StoreAnswered answer = served.answer;
      answer.id = served.id;  // of a request that was given up, the answer may be to an earlier one
      out.u32(slot).blob(record_of(rank, std::move(answer)));
    }
  }
  return std::move(out).take();
}

KeptStore KeptStore::decode(std::span<const std::byte> bytes, int world_size) {
  ByteReader in(bytes, "the job's store");
  KeptStore kept;
  for (std::uint64_t left = in.u64(); left > 0; --left) {
    const auto [rank, asked] = read_record<StoreAsked>(in, world_size);
    const auto answers = kept.service_.handle(client_of(rank), to_request(asked));
    if (asked.kind != Kind::set && !answers.empty())
      throw MalformedMessage(fmt::format("the job's store arrived with a request of rank {} that waits in vain", rank));
  }
  while (in.remaining() > 0) {
    const std::uint32_t slot = in.u32();
    auto [rank, answer] = read_record<StoreAnswered>(in, world_size);
    kept.served_[rank][slot] = {.id = answer.id, .answer = std::move(answer)};
  }
  return kept;
}

}  // namespace tutti::control
