// tcp_store.cpp: many threads, one connection.
// SPDX-License-Identifier: Apache-2.0
//
// 1. At most one thread, the reader, waits for the socket to become readable; it hands replies to the others and, when it
//    has its own, wakes one of them to be the next reader.
// 2. Frames go into one buffer in the order of the calls, and leave it whole: a call that gives up has not cut a frame short.
// 3. A call that gives up cancels its request; a reply that comes all the same belongs to nobody and is dropped.
#include "store/tcp_store.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <tutti/error.hpp>

#include "store/limits.hpp"
#include "store/protocol.hpp"
#include "wire/channel.hpp"

namespace tutti {

namespace {

using namespace store;

class TcpStore final : public Store {
 public:
  TcpStore(wire::Channel channel, std::string name)
      : channel_(std::move(channel)), name_(std::move(name)), buffer_(1 << 16) {}

  void set(std::string_view key, std::string_view value, TimePoint deadline) override {
    check_value(key, value);
    (void)call({.kind = Request::Kind::set, .key = std::string(key), .value = std::string(value)}, deadline);
  }
  std::string get(std::string_view key, TimePoint deadline) override {
    return *call({.kind = Request::Kind::get, .key = std::string(key)}, deadline).value;
  }
  void wait(std::string_view key, TimePoint deadline) override {
    (void)call({.kind = Request::Kind::wait, .key = std::string(key)}, deadline);
  }
  std::optional<std::string> try_get(std::string_view key, TimePoint deadline) override {
    const Reply reply = call({.kind = Request::Kind::try_get, .key = std::string(key)}, deadline);
    return reply.kind == Reply::Kind::value ? std::optional(*reply.value) : std::nullopt;
  }
  std::int64_t add(std::string_view key, std::int64_t amount, TimePoint deadline) override {
    return call({.kind = Request::Kind::add, .key = std::string(key), .amount = amount}, deadline).number;
  }
  std::string compare_set(std::string_view key, std::optional<std::string_view> expected, std::string_view desired,
                          TimePoint deadline) override {
    check_value(key, desired);
    Request request{.kind = Request::Kind::compare_set, .key = std::string(key), .value = std::string(desired)};
    if (expected) {
      check_value(key, *expected);
      request.expected = std::string(*expected);
    }
    return *call(std::move(request), deadline).value;
  }
  bool remove(std::string_view key, TimePoint deadline) override {
    return call({.kind = Request::Kind::remove, .key = std::string(key)}, deadline).number != 0;
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  Reply call(Request request, TimePoint deadline) {
    check_key(request.key);
    Lock lock(mutex_);
    request.id = next_id_++;
    throw_if_gone(request);
    if (now() >= deadline) throw_timeout(name_, name_of(request.kind), request.key, "it had passed before the call");
    output_ += encode(request);
    std::optional<Reply>& reply = waiting_[request.id];
    flush();
    while (!reply && gone_.empty() && now() < deadline) wait_a_turn(lock, deadline);
    return conclude(request);
  }

  // Waits as the reader if there is none; otherwise until a reader has news, or, with bytes left to send, room for them.
  void wait_a_turn(Lock& lock, TimePoint deadline) {
    const bool sends = has_unsent();
    if (!reading_) {
      reading_ = true;
      lock.unlock();
      const short events = wire::wait_for(channel_.fd(), sends ? POLLIN | POLLOUT : POLLIN, deadline);
      lock.lock();
      reading_ = false;
      flush();
      if ((events & POLLIN) != 0) receive();
      news_.notify_all();
    } else if (sends) {
      lock.unlock();
      wire::wait_for(channel_.fd(), POLLOUT, deadline);
      lock.lock();
      flush();
    } else {
      news_.wait_until(lock, deadline);
    }
  }

  Reply conclude(const Request& request) {
    auto entry = waiting_.extract(request.id);
    if (entry.mapped()) {
      Reply reply = std::move(*entry.mapped());
      if (reply.kind == Reply::Kind::refused) throw InvalidArgument(*reply.value);
      return reply;
    }
    throw_if_gone(request);
    output_ += encode({.kind = Request::Kind::cancel, .id = request.id});
    flush();
    const bool waits = request.kind == Request::Kind::get || request.kind == Request::Kind::wait;
    throw_timeout(name_, name_of(request.kind), request.key, waits ? "nobody set it" : "the server did not answer");
  }

  void throw_if_gone(const Request& request) const {
    if (getpid() != process_) {
      throw RendezvousError(
          fmt::format("{}: {} of the key {} failed, because this process is a fork of the one that "
                      "connected to it; connect again here",
                      name_, name_of(request.kind), shown_key(request.key)));
    }
    if (gone_.empty()) return;
    throw RendezvousError(
        fmt::format("{}: {} of the key {} failed, because the server is gone: {}; the rank that ran it has "
                    "ended or failed, look at its output",
                    name_, name_of(request.kind), shown_key(request.key), gone_));
  }

  [[nodiscard]] bool has_unsent() const { return !is_cut_ && (sent_ < output_.size() || channel_.has_unsent()); }

  void flush() {
    while (gone_.empty() && has_unsent()) {
      const auto moved = channel_.write(std::as_bytes(std::span(output_)).subspan(sent_));
      // What the server said last is still to be read; the read after it tells that the connection is over.
      is_cut_ = moved.closed();
      if (!moved.moved()) break;
      sent_ += moved.bytes;
    }
    if (is_cut_ || sent_ == output_.size()) {
      output_.clear();
      sent_ = 0;
    }
  }

  void receive() {
    try {
      while (gone_.empty()) {
        const auto moved = channel_.read(buffer_);
        if (moved.closed()) gone_ = moved.reason();
        if (!moved.moved()) return;
        stream_.feed(std::span(buffer_).first(moved.bytes), [&](Reply&& reply) {
          const auto found = waiting_.find(reply.id);
          if (found != waiting_.end()) found->second = std::move(reply);
        });
      }
    } catch (const MalformedMessage& error) {
      gone_ = error.what();
    }
  }

  static TimePoint now() { return std::chrono::steady_clock::now(); }

  wire::Channel channel_;
  const std::string name_;
  const pid_t process_ = getpid();  // its children share neither its connection nor its turns
  std::mutex mutex_;
  std::condition_variable news_;
  bool reading_ = false;
  std::string gone_;  // why the connection is of no more use; empty while it is
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, std::optional<Reply>> waiting_;  // references to its elements stay valid
  std::string output_;
  std::size_t sent_ = 0;
  bool is_cut_ = false;  // nothing can be sent any more
  ReplyStream stream_;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::shared_ptr<Store> tcp_store(const TcpStoreOptions& options) {
  // A server that is there answers at once; another program on its port may never, and then the caller wants to know soon.
  constexpr auto authentication_most = std::chrono::seconds(30);
  const auto addresses = wire::resolve(options.server, options.deadline);
  const Clock& clock = steady_clock();
  std::string name = fmt::format("the store at {}", options.server.text());
  for (std::optional<TimePoint> latest;;) {
    UniqueFd socket = wire::connect(addresses, options.deadline, {.keepalive = std::chrono::seconds(10)});
    wire::Channel channel(std::move(socket), {.role = wire::Handshake::Role::initiator,
                                              .secret = options.secret,
                                              .encryption = options.encryption,
                                              .purpose = "store client"});
    const TimePoint begin = clock.now();
    if (!latest) latest = std::min(options.deadline, deadline_after(begin, authentication_most));
    try {
      wire::open_channel(channel, name, *latest);
      return std::make_shared<TcpStore>(std::move(channel), std::move(name));
    } catch (const AuthenticationError&) {
      // A server turns away a client that takes long, as one does on a busy machine.
      const TimePoint now = clock.now();
      const bool was_late =
          channel.was_too_late() || (!channel.peer_sent_anything() && now - begin >= wire::unauthenticated_time_min);
      if (!was_late || now >= *latest) throw;
    }
  }
}

}  // namespace tutti
