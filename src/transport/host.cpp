// host.cpp: the transport inside a host as its callers see it.
// SPDX-License-Identifier: Apache-2.0
#include "transport/host.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include <tutti/error.hpp>

#include "transport/stage.hpp"

namespace tutti::transport {

void check(const HostOptions& options) {
  const auto refuse = [](const char* name, std::int64_t value, const char* range) {
    throw InvalidArgument(fmt::format("shared-memory option {} = {} is out of range: {}", name, value, range));
  };
  const auto ring_bytes = static_cast<std::int64_t>(options.ring_bytes);
  if (ring_bytes < 4096 || ring_bytes > (1 << 30) || ring_bytes % 4096 != 0) {
    refuse("ring_bytes", ring_bytes, "4 KiB to 1 GiB, whole pages");
  }
  if (options.fragment_bytes < 64) refuse("piece_bytes", options.fragment_bytes, "64 or more");
  if (options.eager_bytes_max < 0) refuse("eager_bytes_max", options.eager_bytes_max, "0 or more");
  // An eager message goes in as a whole, also while the reader has not told of the last eighth it read.
  constexpr auto line = static_cast<std::int64_t>(host::line_bytes);
  const std::int64_t fragment_room = options.fragment_bytes + 2 * line;
  if (options.eager_bytes_max > ring_bytes ||
      fragment_room * (options.eager_bytes_max / options.fragment_bytes + 3) > ring_bytes / 8 * 7) {
    refuse("ring_bytes", ring_bytes, "room for one eager message and two pieces at least");
  }
  if (options.cts_fragment_bytes < 64) refuse("granted_piece_bytes", options.cts_fragment_bytes, "64 or more");
  if (options.credit_bytes < 2 * credit_cost(options.eager_bytes_max)) {
    refuse("credit_bytes", options.credit_bytes, "room for two eager messages at least");
  }
  if (options.fetch_bytes_per_poll < 1) refuse("fetch_bytes_per_poll", options.fetch_bytes_per_poll, "1 or more");
}

HostOptions options_for(int ranks, bool oversubscribed) {
  HostOptions options;
  if (oversubscribed) return options;
  constexpr std::uint64_t least = 128 << 10, most = 512 << 10, of_all = 4 << 20;
  options.ring_bytes = std::clamp(std::bit_floor(of_all / static_cast<std::uint64_t>(ranks)), least, most);
  options.eager_bytes_max = static_cast<std::int64_t>(options.ring_bytes) / 8;
  options.fetch_bytes_max = 0;
  return options;
}

std::uint64_t lay_out_control_block(shm::Arena& arena, int world_size) {
  const std::size_t count = static_cast<std::size_t>(world_size);
  auto* const notices = reinterpret_cast<host::Notice*>(arena.allocate(count * sizeof(host::Notice), 4096));
  for (std::size_t i = 0; i < count; ++i) new (&notices[i]) host::Notice{};
  return arena.offset_of(notices);
}

HostTransport::HostTransport(HostSetup setup)
    : options_((check(setup.options), setup.options)),
      clock_(setup.clock),
      local_peers_(setup.local_peers),
      inner_(std::move(setup.inner)),
      matching_queue_(inner_->matching_queue()),
      own_doorbell_(&local_peers_->arena().header()),
      peers_(static_cast<std::size_t>(inner_->size())),
      sender_({.rank = inner_->rank(),
               .options = options_,
               .arena = local_peers_->arena(),
               .first_use = [this](int peer) { attach(peer); }}),
      receiver_({.rank = inner_->rank(),
                 .options = options_,
                 .local_peers = *local_peers_,
                 .matching_queue = matching_queue_,
                 .sender = sender_,
                 .peers = peers_,
                 .suspect = [this](int peer) { attach(peer); }}),
      is_lost_(peers_.size()) {
  if (setup.control_blocks.size() != peers_.size()) {
    throw InvalidArgument(
        fmt::format("rank {}: {} boards for a world of {} ranks", rank(), setup.control_blocks.size(), size()));
  }
  for (int peer = 0; peer < size(); ++peer) {
    Peer& entry = peers_[static_cast<std::size_t>(peer)];
    entry.rank = peer;
    if (peer == rank()) continue;
    if (setup.control_blocks[static_cast<std::size_t>(peer)] == no_control_block_offset) {
      ++remote_count_;
    } else {
      meet(entry, setup);
    }
  }
  inner_->listen(this);
  inner_->on_departure([this](int peer, const std::string& reason) { depart(peer, reason); });
}

// In a forked child the arena is still the parent's.
HostTransport::~HostTransport() {
  if (!abandoned_) sender_.withdraw_rts();
}

void HostTransport::abandon() {
  abandoned_ = true;
  inner_->abandon();
}

void HostTransport::meet(Peer& peer, const HostSetup& setup) {
  const auto control_block = [&](int owner, int reader) {
    const std::uint64_t offset = setup.control_blocks[static_cast<std::size_t>(owner)];
    if (offset % alignof(host::Notice) != 0) {
      throw InvalidArgument(fmt::format("rank {}: the board of rank {} at {} is misplaced", rank(), owner, offset));
    }
    const auto notice = static_cast<std::uint64_t>(reader) * sizeof(host::Notice);
    return reinterpret_cast<host::Notice*>(local_peers_->at(owner, offset + notice, sizeof(host::Notice)));
  };
  peer.is_local = true;
  peer.doorbell = &local_peers_->header(peer.rank);
  peer.ours = control_block(rank(), peer.rank);
  peer.theirs = control_block(peer.rank, rank());
  unconnected_.push_back(&peer);
}

void HostTransport::listen(TransportListener* listener) {
  listener_ = listener;
  receiver_.listen(listener);
}

HostTransport::Peer* HostTransport::local_peer(int rank) {
  if (rank < 0 || rank >= size()) return nullptr;
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  return peer.is_local ? &peer : nullptr;
}

void HostTransport::send(Transfer& transfer) {
  Peer* const peer = local_peer(transfer.peer);
  if (peer == nullptr || transfer.envelope.bytes < 0) {
    look_inside_.store(true, std::memory_order_relaxed);
    return inner_->send(transfer);
  }
  transfer.error.clear();
  if (peer->is_gone || closing_) return fail(transfer, peer->reason);
  sender_.send(*peer, transfer);
}

// The matching queue is the same for all peers; whose message it found decides who hands it over.
void HostTransport::recv(Transfer& transfer) {
  Peer* const peer = local_peer(transfer.peer);
  if (peer == nullptr && transfer.peer != any_peer) {
    look_inside_.store(true, std::memory_order_relaxed);
    return inner_->recv(transfer);
  }
  transfer.error.clear();
  const int asked = transfer.peer;
  const Envelope wanted = transfer.envelope;
  for (;;) {
    set_stage(transfer, Stage::posted);
    const MatchingQueue::Found found = matching_queue_.post(transfer);
    if (found.fit == MatchingQueue::Fit::none) break;
    if (found.fit == MatchingQueue::Fit::wrong_size) {
      transfer.handle = nullptr;
      return discard(*found.unexpected);
    }
    if (local_peer(found.unexpected->peer) == nullptr) return inner_->use(*found.unexpected, transfer);
    if (receiver_.use(*found.unexpected, transfer) == host::Receiver::Use::taken) return;
    transfer.peer = asked;
    transfer.envelope = wanted;
  }
  if (peer == nullptr) return;
  if (peer->is_gone) {
    matching_queue_.withdraw(transfer);
    return fail(transfer, peer->reason);
  }
  receiver_.count_posted(1);
}

bool HostTransport::try_recv(Transfer& transfer, int spins) {
  Peer* const peer = local_peer(transfer.peer);
  if (peer == nullptr || peer->is_gone || !peer->in.exists() || !matching_queue_.is_empty()) return false;
  try {
    return receiver_.try_take(*peer, transfer, spins);
  } catch (const MalformedMessage& error) {
    fail_peer(*peer, error.what());
    return false;
  }
}

void HostTransport::cancel(Transfer& transfer) {
  if (transfer.state != Transfer::State::pending) return;
  Peer* const peer = local_peer(transfer.peer);
  if (peer == nullptr && transfer.peer != any_peer) return inner_->cancel(transfer);
  switch (stage_of(transfer)) {
    case Stage::sending:
    case Stage::announced: sender_.cancel(*peer, transfer); break;
    case Stage::taken: receiver_.cancel_taken(*peer, transfer); break;
    default:
      matching_queue_.withdraw(transfer);
      if (peer != nullptr) receiver_.count_posted(-1);
  }
  transfer.state = Transfer::State::idle;
  transfer.handle = nullptr;
}

void HostTransport::give_back(Transfer& receive) {
  if (receive.state == Transfer::State::pending && stage_of(receive) == Stage::posted) return cancel(receive);
  Peer* const peer = local_peer(receive.peer);
  const auto [match, rest] = matching_queue_.give_back(receive);
  if (peer != nullptr && match.receive != nullptr && !match.from_anyone) receiver_.count_posted(-1);
  if (rest != nullptr) peer != nullptr ? receiver_.replace(*peer, receive, *rest) : inner_->replace(receive, *rest);
  receive.state = Transfer::State::idle;
  receive.handle = nullptr;
}

void HostTransport::discard(UnexpectedMessage& unexpected) {
  local_peer(unexpected.peer) != nullptr ? receiver_.discard(unexpected) : inner_->discard(unexpected);
}

void HostTransport::forget(std::uint64_t group, std::uint64_t up_to_sequence) {
  for (UnexpectedMessage* chain = matching_queue_.forget(group, up_to_sequence); chain != nullptr;) {
    discard(*std::exchange(chain, chain->next));
  }
}

void HostTransport::post(int peer, std::span<const std::byte> message) {
  look_inside_.store(true, std::memory_order_relaxed);
  inner_->post(peer, message);
}

void HostTransport::attach(int peer) {
  look_inside_.store(true, std::memory_order_relaxed);
  inner_->attach(peer);
}

void HostTransport::wait(TimePoint until, Events events) {
  inner_->wait(until, events);
  look_inside_.store(true, std::memory_order_relaxed);
}

bool HostTransport::busy_outside() const {
  const auto near_count = static_cast<std::size_t>(receiver_.posted_count());
  return inner_->has_transfers() || (remote_count_ > 0 && matching_queue_.posted_count() > near_count);
}

}  // namespace tutti::transport
