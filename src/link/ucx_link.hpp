// ucx_link.hpp: frames as active messages of UCX.
// SPDX-License-Identifier: Apache-2.0
//
// Every active message starts with a prefix that names its sender and proves that it knows the job's secret; what does not is dropped
// unread. UCX promises no order between active messages, so ordered frames carry numbers, and one that overtakes another waits.
//
// This link stands beside a network, which says goodbye for the rank. A goodbye must not overtake frames: a rank whose caller asks
// whether its frames have left (is_flushed) asks its peers how many have arrived, and has an answer before it says goodbye. A peer of
// which UCX says that it failed may have said goodbye, too: the loss is reported after the network was polled once more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/link.hpp>

#include "link/ucx_buffers.hpp"
#include "link/ucx_library.hpp"

namespace tutti::link {

class UcxLink final : public Link {
 public:
  explicit UcxLink(UcxSetup setup);
  ~UcxLink() override;
  UcxLink(const UcxLink&) = delete;
  UcxLink& operator=(const UcxLink&) = delete;

  [[nodiscard]] std::string_view name() const override { return "ucx"; }
  [[nodiscard]] Limits limits() const override;
  void listen(LinkListener* listener) override { listener_ = listener; }
  Taken send(int peer, FrameOrder order, const Frame& frame, void* owner) override;
  bool poll() override;
  void drain(int peer) override;
  void disconnect(int peer) override;
  [[nodiscard]] bool must_be_polled() const override { return true; }
  [[nodiscard]] bool is_last_poll_before_sleep() const override { return !failing_.empty(); }
  [[nodiscard]] bool is_flushed() const override;
  void give_up(int peer) override { peer_at(peer).is_given_up = true; }
  void abandon() override;

 private:
  using Token = std::array<std::byte, 16>;
  enum class Kind : std::uint8_t {
    ordered,  // a frame
    bulk,     // a frame that others may overtake
    flush,    // tell me when so many of my frames have arrived (the head)
    flushed,  // so many of your frames have arrived
  };
  struct Prefix {
    Token token{};
    std::uint32_t rank = 0;        // of the sender
    std::uint32_t sequence = 0;    // of an ordered frame
    std::uint16_t head_bytes = 0;  // of the data: the frame's head, then its payload
    Kind kind = Kind::ordered;
    std::uint8_t type = 0;
  };
  static_assert(sizeof(Prefix) == 28);
  // A frame that came before one that was sent earlier.
  struct EarlyFrame {
    std::uint8_t type = 0;
    std::vector<std::byte> head{}, payload{};
  };
  struct UcxPeer {
    UcxLink* link = nullptr;
    int rank = -1;
    // UCX 1.13 does not notice the end of a peer through shared memory, and does not use it where it was asked to. Such a connection cannot
    // be closed by force either: it stays until the worker goes.
    bool uses_shared_memory = false;
    ucp_ep* endpoint = nullptr;  // made when the first frame is sent
    Token own_token{}, token{};  // of what is sent to it, and of what it sends
    bool is_gone = false;        // nothing more is heard or sent
    bool is_given_up = false;    // nobody waits until it reads what was sent
    std::string failure{};       // not empty: UCX, or its frames, say that it is lost
    std::int64_t in_flight_bytes = 0;
    std::uint32_t next_sent = 0, next_received = 0;     // ordered frames
    std::uint64_t sent_count = 0, arrived_count = 0;    // frames to it, and those of them that it has
    std::uint64_t asked_count = 0;                      // arrivals that it was asked for
    std::uint64_t received_count = 0, flush_count = 0;  // frames from it; it wants to know when it is so many
    std::map<std::uint32_t, EarlyFrame> early{};
  };

  [[nodiscard]] UcxPeer& peer_at(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  void connect(UcxPeer& peer);
  void close_endpoint(UcxPeer& peer);
  void post(UcxPeer& peer, const Prefix& prefix, const Frame& frame);
  void post_count(UcxPeer& peer, Kind kind, std::uint64_t count);
  void ask_for_arrivals();
  void answer_flush(UcxPeer& peer);
  bool progress(int rounds_max);
  bool report_failures();
  void fail(UcxPeer& peer, std::string reason);
  void reap_closed();

  // Called by UCX, from inside progress(). Nothing may be thrown through it.
  static ucs_status_t arrived(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                              const ucp_am_recv_param_t* parameters);
  static void was_sent(void* request, ucs_status_t status, void* buffer);
  static void failed(void* peer, ucp_ep* endpoint, ucs_status_t status);
  void take(UcxPeer& peer, const Prefix& prefix, const Frame& frame);
  void deliver(UcxPeer& peer, const Frame& frame);

  UcxOptions options_;
  int rank_;
  UcxBuffers buffers_;
  std::vector<UcxPeer> peers_;
  std::vector<std::string> addresses_;
  std::unique_ptr<OpenUcxWorker> worker_;
  const Ucx& ucx_;
  LinkListener* listener_ = nullptr;
  struct Failing {
    int rank = -1;
    bool was_network_polled = false;
  };
  std::vector<Failing> failing_;
  std::vector<void*> closing_;        // requests of UCX
  mutable bool wants_flush_ = false;  // a caller waits until all frames have arrived
};

}  // namespace tutti::link
