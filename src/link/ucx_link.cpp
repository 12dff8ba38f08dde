// ucx_link.cpp: frames as active messages of UCX.
// SPDX-License-Identifier: Apache-2.0
#include "link/ucx_link.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <tutti/error.hpp>

namespace tutti::link {
namespace {

constexpr unsigned active_message_id = 7;
// Of one poll: UCX takes several messages in a round, and a round more that finds nothing would cost a tenth of a small message's time.
constexpr int rounds_per_poll = 1;
constexpr int rounds_of_drain = 1000;
// A connection that is closed by force is closed at once; UCX may need some rounds to say so.
constexpr int rounds_of_closing = 100;

// What rank `from` puts into the messages to rank `to`. Nobody without the secret knows it.
std::array<std::byte, 16> make_token(const wire::Secret& secret, std::uint64_t world, int from, int to) {
  const std::string text = fmt::format("tutti ucx {} {} {}", world, from, to);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned bytes = 0;
  const auto* const made =
      HMAC(EVP_sha256(), secret.bytes().data(), static_cast<int>(secret.bytes().size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &bytes);
  if (made == nullptr) throw Error("OpenSSL cannot compute HMAC-SHA256");
  std::array<std::byte, 16> token;
  std::memcpy(token.data(), digest.data(), token.size());
  return token;
}

std::uint64_t count_in(std::span<const std::byte> head) {
  std::uint64_t count = 0;
  if (head.size() != sizeof count) throw Error("a frame without a number; give all ranks the same version of Tutti");
  std::memcpy(&count, head.data(), sizeof count);
  return count;
}

/// Takes the same time wherever they differ.
bool is_same_token(const std::array<std::byte, 16>& a, const std::array<std::byte, 16>& b) {
  std::array<std::uint64_t, 2> first{}, second{};
  std::memcpy(first.data(), a.data(), a.size());
  std::memcpy(second.data(), b.data(), b.size());
  return ((first[0] ^ second[0]) | (first[1] ^ second[1])) == 0;
}

bool carries_frames_in_memory(std::string_view transport) {
  return transport.starts_with("posix/") || transport.starts_with("sysv/") || transport.starts_with("xpmem/");
}

}  // namespace

UcxLink::UcxLink(UcxSetup setup)
    : options_(std::move(setup.options)),
      rank_(setup.rank),
      buffers_(sizeof(Prefix) + frame_head_bytes_max +
               static_cast<std::size_t>(std::max(options_.eager_bytes_max, options_.fragment_bytes_max))),
      peers_(setup.addresses.size()),
      addresses_(std::move(setup.addresses)),
      worker_(static_cast<OpenUcxWorker*>(setup.worker.release())),
      ucx_(worker_->ucx()) {
  const auto transports = worker_->transports();
  const bool has_shared_memory = std::ranges::any_of(transports, carries_frames_in_memory);
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    UcxPeer& peer = peers_[rank];
    peer.uses_shared_memory = has_shared_memory && setup.on_this_host[rank];
    peer.link = this;
    peer.rank = static_cast<int>(rank);
    peer.own_token = make_token(setup.secret, setup.world, rank_, peer.rank);
    peer.token = make_token(setup.secret, setup.world, peer.rank, rank_);
  }
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  check(ucx_, ucx_.ucp_worker_query(worker_->worker(), &attributes), "ucp_worker_query");
  if (attributes.max_am_header < sizeof(Prefix) + frame_head_bytes_max) {
    throw Unsupported(
        fmt::format("UCX's transports carry headers of {} bytes, and {} are needed; choose others by "
                    "UCX_TLS, or use another link",
                    attributes.max_am_header, sizeof(Prefix) + frame_head_bytes_max));
  }
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
                       UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = active_message_id;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = &UcxLink::arrived;
  handler.arg = this;
  check(ucx_, ucx_.ucp_worker_set_am_recv_handler(worker_->worker(), &handler), "ucp_worker_set_am_recv_handler");
}

UcxLink::~UcxLink() {
  if (!worker_) return;
  for (UcxPeer& peer : peers_) close_endpoint(peer);
  for (int round = 0; round < rounds_of_closing && !closing_.empty(); ++round) {
    progress(1);
    reap_closed();
  }
  for (void* const request : closing_) ucx_.ucp_request_free(request);
  worker_.reset();  // UCX gives the buffers back that it still has
}

void UcxLink::abandon() {
  worker_->abandon();
  static_cast<void>(worker_.release());
}

Link::Limits UcxLink::limits() const {
  return {.eager_bytes_max = options_.eager_bytes_max,
          .credit_bytes = options_.credit_bytes,
          .fragment_bytes_max = options_.fragment_bytes_max};
}

void UcxLink::connect(UcxPeer& peer) {
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(addresses_[static_cast<std::size_t>(peer.rank)].data());
  parameters.err_mode = peer.uses_shared_memory ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.cb = &UcxLink::failed;
  parameters.err_handler.arg = &peer;
  const ucs_status_t status = ucx_.ucp_ep_create(worker_->worker(), &parameters, &peer.endpoint);
  if (status == UCS_OK) return;
  throw Error(fmt::format("rank {}: UCX cannot reach rank {}: {}; choose transports that both hosts have by UCX_TLS",
                          rank_, peer.rank, ucx_.ucs_status_string(status)));
}

Link::Taken UcxLink::send(int rank, FrameOrder order, const Frame& frame, void* /*owner*/) {
  UcxPeer& peer = peer_at(rank);
  if (peer.is_gone || !peer.failure.empty()) return Taken::copied;  // nobody to send it to
  const auto bytes = static_cast<std::int64_t>(sizeof(Prefix) + frame.head.size() + frame.payload.size());
  if (peer.in_flight_bytes > 0 && peer.in_flight_bytes + bytes > options_.in_flight_bytes_max) return Taken::no_room;
  const bool is_bulk = order == FrameOrder::bulk;
  post(peer,
       {.token = peer.own_token,
        .rank = static_cast<std::uint32_t>(rank_),
        .sequence = is_bulk ? 0 : peer.next_sent++,
        .head_bytes = static_cast<std::uint16_t>(frame.head.size()),
        .kind = is_bulk ? Kind::bulk : Kind::ordered,
        .type = frame.type},
       frame);
  ++peer.sent_count;
  return Taken::copied;
}

void UcxLink::post(UcxPeer& peer, const Prefix& prefix, const Frame& frame) {
  if (peer.endpoint == nullptr) connect(peer);
  const std::size_t payload_begin = sizeof prefix + frame.head.size(), bytes = payload_begin + frame.payload.size();
  auto buffer = buffers_.take(bytes);
  std::byte* const memory = buffer->memory.get();
  std::memcpy(memory, &prefix, sizeof prefix);
  if (!frame.head.empty()) std::memcpy(memory + sizeof prefix, frame.head.data(), frame.head.size());
  if (!frame.payload.empty()) std::memcpy(memory + payload_begin, frame.payload.data(), frame.payload.size());
  buffer->owner = &peer;
  buffer->bytes = static_cast<std::int64_t>(bytes);
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  parameters.cb.send = &UcxLink::was_sent;
  parameters.user_data = buffer.get();
  peer.in_flight_bytes += buffer->bytes;
  // Only a message whose header is as short as the prefix can go inline through UCX's shared memory.
  void* const request = ucx_.ucp_am_send_nbx(peer.endpoint, active_message_id, memory, sizeof prefix,
                                             memory + sizeof prefix, bytes - sizeof prefix, &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    static_cast<void>(buffer.release());  // was_sent() takes it
    return;
  }
  peer.in_flight_bytes -= buffer->bytes;
  buffers_.give_back(std::move(buffer));
  if (UCS_PTR_IS_ERR(request)) fail(peer, ucx_.ucs_status_string(UCS_PTR_STATUS(request)));
}

void UcxLink::was_sent(void* request, ucs_status_t /*status*/, void* given) {
  auto buffer = std::unique_ptr<UcxBuffer>(static_cast<UcxBuffer*>(given));
  auto& peer = *static_cast<UcxPeer*>(buffer->owner);
  peer.in_flight_bytes -= buffer->bytes;
  peer.link->ucx_.ucp_request_free(request);
  peer.link->buffers_.give_back(std::move(buffer));
}

void UcxLink::failed(void* given, ucp_ep* /*endpoint*/, ucs_status_t status) {
  auto& peer = *static_cast<UcxPeer*>(given);
  peer.link->fail(peer, fmt::format("UCX: {}", peer.link->ucx_.ucs_status_string(status)));
}

void UcxLink::fail(UcxPeer& peer, std::string reason) {
  if (peer.is_gone || !peer.failure.empty()) return;
  peer.failure = std::move(reason);
  failing_.push_back({.rank = peer.rank});
}

ucs_status_t UcxLink::arrived(void* given, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                              const ucp_am_recv_param_t* parameters) {
  auto& self = *static_cast<UcxLink*>(given);
  Prefix prefix;
  if (header_bytes != sizeof prefix) return UCS_OK;
  std::memcpy(&prefix, header, sizeof prefix);
  if (prefix.rank >= self.peers_.size()) return UCS_OK;
  UcxPeer& peer = self.peer_at(static_cast<int>(prefix.rank));
  if (!is_same_token(prefix.token, peer.token)) return UCS_OK;
  if (peer.is_gone || !peer.failure.empty()) return UCS_OK;
  try {
    if ((parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || prefix.head_bytes > frame_head_bytes_max ||
        prefix.head_bytes > bytes)
      throw Error("a frame that no version of Tutti sends; give all ranks the same version");
    const std::span rest(static_cast<const std::byte*>(data), bytes);
    self.take(peer, prefix,
              {.type = prefix.type, .head = rest.first(prefix.head_bytes), .payload = rest.subspan(prefix.head_bytes)});
  } catch (const std::exception& error) {
    self.fail(peer, error.what());
  }
  return UCS_OK;
}

void UcxLink::take(UcxPeer& peer, const Prefix& prefix, const Frame& frame) {
  switch (prefix.kind) {
    case Kind::flush: peer.flush_count = count_in(frame.head); return answer_flush(peer);
    case Kind::flushed: peer.arrived_count = std::max(peer.arrived_count, count_in(frame.head)); return;
    case Kind::bulk: deliver(peer, frame); break;
    case Kind::ordered:
      if (prefix.sequence != peer.next_received) {
        peer.early[prefix.sequence] = {.type = frame.type,
                                       .head = {frame.head.begin(), frame.head.end()},
                                       .payload = {frame.payload.begin(), frame.payload.end()}};
        return;
      }
      deliver(peer, frame);
      ++peer.next_received;
      for (auto next = peer.early.find(peer.next_received); next != peer.early.end();
           next = peer.early.find(peer.next_received)) {
        deliver(peer, {.type = next->second.type, .head = next->second.head, .payload = next->second.payload});
        peer.early.erase(next);
        ++peer.next_received;
      }
      break;
    default: throw Error("a frame of an unknown kind; give all ranks the same version of Tutti");
  }
  if (peer.flush_count > 0) answer_flush(peer);
}

void UcxLink::deliver(UcxPeer& peer, const Frame& frame) {
  listener_->frame(peer.rank, frame);
  ++peer.received_count;
}

void UcxLink::answer_flush(UcxPeer& peer) {
  if (peer.received_count < peer.flush_count) return;
  peer.flush_count = 0;
  post_count(peer, Kind::flushed, peer.received_count);
}

void UcxLink::post_count(UcxPeer& peer, Kind kind, std::uint64_t count) {
  post(peer,
       {.token = peer.own_token, .rank = static_cast<std::uint32_t>(rank_), .head_bytes = sizeof count, .kind = kind},
       {.head = std::as_bytes(std::span(&count, 1))});
}

bool UcxLink::is_flushed() const {
  const bool is_done = std::ranges::all_of(peers_, [](const UcxPeer& peer) {
    return peer.is_gone || peer.is_given_up || !peer.failure.empty() || peer.arrived_count == peer.sent_count;
  });
  wants_flush_ = !is_done;
  return is_done;
}

void UcxLink::ask_for_arrivals() {
  for (UcxPeer& peer : peers_) {
    if (peer.is_gone || !peer.failure.empty() || peer.asked_count == peer.sent_count) continue;
    peer.asked_count = peer.sent_count;
    post_count(peer, Kind::flush, peer.sent_count);
  }
}

bool UcxLink::progress(int rounds_max) {
  int rounds = 0;
  while (rounds < rounds_max && ucx_.ucp_worker_progress(worker_->worker()) != 0) ++rounds;
  return rounds > 0;
}

bool UcxLink::poll() {
  bool moved = progress(rounds_per_poll);
  if (wants_flush_) ask_for_arrivals();
  if (!failing_.empty()) moved |= report_failures();
  if (!closing_.empty()) reap_closed();
  return moved;
}

// A peer that has left in peace may look like a lost one: its goodbye has come through the network then, which is polled in between
// (is_last_poll_before_sleep), and disconnect() has been called.
bool UcxLink::report_failures() {
  std::vector<Failing> due = std::exchange(failing_, {});
  for (const Failing& failing : due) {
    UcxPeer& peer = peer_at(failing.rank);
    if (peer.is_gone) continue;
    if (!failing.was_network_polled) {
      failing_.push_back({.rank = failing.rank, .was_network_polled = true});
      continue;
    }
    close_endpoint(peer);
    peer.is_gone = true;
    listener_->lost(peer.rank, peer.failure);
  }
  return !due.empty();
}

void UcxLink::drain(int rank) {
  if (!peer_at(rank).is_gone) progress(rounds_of_drain);
}

void UcxLink::disconnect(int rank) {
  UcxPeer& peer = peer_at(rank);
  peer.is_gone = true;
  peer.early.clear();
  close_endpoint(peer);
}

void UcxLink::close_endpoint(UcxPeer& peer) {
  if (peer.endpoint == nullptr || peer.uses_shared_memory) return;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* const request = ucx_.ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &parameters);
  if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
}

void UcxLink::reap_closed() {
  std::erase_if(closing_, [this](void* request) {
    if (ucx_.ucp_request_check_status(request) == UCS_INPROGRESS) return false;
    ucx_.ucp_request_free(request);
    return true;
  });
}

std::unique_ptr<Link> make_ucx_link(UcxSetup setup) { return std::make_unique<UcxLink>(std::move(setup)); }

}  // namespace tutti::link
