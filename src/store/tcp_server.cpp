// tcp_server.cpp: the loop of the tcp store's server.
// SPDX-License-Identifier: Apache-2.0
#include "store/tcp_server.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <tutti/error.hpp>

#include "base/made_fd.hpp"
#include "base/start_thread.hpp"
#include "store/service.hpp"
#include "store/tcp_connection.hpp"
#include "wire/socket.hpp"

namespace tutti {

namespace {

using namespace store;
using Outcome = TcpConnection::Outcome;

TimePoint now() { return std::chrono::steady_clock::now(); }

void check_watched(bool worked) {
  if (!worked)
    throw Error(fmt::format("the server of the tcp store cannot watch its sockets: {}", describe_system_error(errno)));
}

class Loop {
 public:
  Loop(const TcpStoreServer::Options& options, int stop)
      : options_(options),
        listener_(options.address, {}),
        epoll_(made(epoll_create1(EPOLL_CLOEXEC), "an epoll instance")),
        buffer_(1 << 16) {
    check_watched(watch(stop, stop_id) && watch(listener_.fd(), listener_id));
  }

  [[nodiscard]] const wire::Address& address() const { return listener_.address(); }

  void run() {
    std::array<epoll_event, 256> events;
    while (true) {
      const int timeout = holding_.empty() ? wire::poll_timeout_ms(now(), next_deadline()) : 0;
      const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
      if (count < 0 && errno != EINTR) {
        return report(
            fmt::format("no client is served any more: cannot wait for sockets: {}", describe_system_error(errno)));
      }
      for (int i = 0; i < count; ++i) {
        const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
        if (id == stop_id) return;
        if (id == listener_id) {
          accept_all();
        } else {
          serve(id, events[static_cast<std::size_t>(i)].events);
        }
      }
      for (const std::uint64_t id : std::exchange(holding_, {})) serve(id, EPOLLIN);
      drop_late_unauthenticated();
      if (accepting_stopped_ && has_room()) resume_accepting();
    }
  }

 private:
  static constexpr std::uint64_t stop_id = 0, listener_id = 1;

  struct Unauthenticated {
    std::uint64_t id;
    TimePoint came;
  };
  using UnauthenticatedList = std::list<Unauthenticated>;  // the oldest first
  struct Client {
    TcpConnection connection;
    wire::Address peer;
    UnauthenticatedList::iterator unauthenticated;  // unauthenticated_.end() once it is authenticated
    std::uint32_t watched = EPOLLIN;
  };

  bool watch(int fd, std::uint64_t id) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  // Unauthenticated connections must leave descriptors for the program, so their number is limited.
  [[nodiscard]] bool has_room() const {
    return unauthenticated_.size() < std::min(options_.unauthenticated_max, wire::descriptors_for_unauthenticated());
  }

  // Accepts a limited number at a time: existing clients must not starve during a flood of connections.
  void accept_all() try {
    constexpr int accepts_max = 256;
    for (int accepts = 0; accepts < accepts_max; ++accepts) {
      if (!has_room()) return stop_accepting();
      auto accepted = listener_.accept();
      if (!accepted) break;
      admit(*std::move(accepted));
    }
    if (std::exchange(dropped_, listener_.dropped()) != listener_.dropped())
      report(fmt::format("a connection was turned away: {}", describe_system_error(EMFILE)));
  } catch (const std::exception& error) {
    // No further connection can be accepted; existing ones are still served.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.fd(), nullptr);
    report(fmt::format("nobody else can come to the store: {}", error.what()));
  }

  void admit(wire::Accepted accepted) try {
    const std::uint64_t id = next_id_++;
    if (!watch(accepted.socket.get(), id)) return;
    const TimePoint came = now();
    Client client{.connection = TcpConnection(std::move(accepted.socket), options_.secret, options_.encryption),
                  .peer = accepted.peer,
                  .unauthenticated = unauthenticated_.end()};
    const auto entry = clients_.emplace(id, std::move(client)).first;
    entry->second.unauthenticated = unauthenticated_.insert(unauthenticated_.end(), {.id = id, .came = came});
  } catch (const std::exception&) {
    // Its own trouble, or a want of memory: it is hung up on, and may try again.
  }

  // Level-triggered, the queue of connections to accept would wake the thread again and again.
  void stop_accepting() {
    epoll_event nothing{.events = 0, .data = {.u64 = listener_id}};
    accepting_stopped_ = epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.fd(), &nothing) == 0;
  }
  void resume_accepting() {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = listener_id}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.fd(), &event);
    accepting_stopped_ = false;
  }

  void report(const std::string& sentence) const {
    if (options_.on_trouble) options_.on_trouble(sentence);
  }

  // Requests of one client are answered in order, but for those that wait.
  void serve(std::uint64_t id, std::uint32_t events) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) return;
    TcpConnection& connection = found->second.connection;
    try {
      requests_.clear();
      const bool readable = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
      if (readable && connection.receive(buffer_, requests_) == Outcome::finished) {
        if (const std::string why = connection.refusal(); !why.empty())
          report(fmt::format("somebody at {} failed to authenticate: {}", found->second.peer.host(), why));
        return drop(id);
      }
      for (Request& request : requests_) {
        for (const auto& [client, reply] : service_.handle(id, std::move(request))) answer(client, reply, id);
      }
    } catch (const std::exception&) {
      return drop(id);  // it does not speak the protocol, or asked for more than there is: its own next call says so
    }
    if (!connection.is_unauthenticated()) forget_unauthenticated(found->second);
    if (connection.flush() == Outcome::finished) return drop(id);
    update_watch(found->second, id);
  }

  // Others are flushed at once; the client being served is flushed when all its requests are answered.
  void answer(std::uint64_t client, const Reply& reply, std::uint64_t served) {
    const auto found = clients_.find(client);
    if (found == clients_.end()) return;
    found->second.connection.send(reply);
    if (client == served) return;
    if (found->second.connection.flush() == Outcome::finished) return drop(client);
    update_watch(found->second, client);
  }

  void update_watch(Client& client, std::uint64_t id) {
    std::uint32_t wanted = client.connection.wants_input() ? EPOLLIN : 0u;
    if (wanted != 0 && client.connection.holds_input()) holding_.push_back(id);  // the epoll says nothing of that
    if (client.connection.has_output()) wanted |= EPOLLOUT;
    if (wanted == client.watched) return;
    epoll_event event{.events = wanted, .data = {.u64 = id}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, client.connection.fd(), &event);  // cannot fail for a socket it knows
    client.watched = wanted;
  }

  void forget_unauthenticated(Client& client) {
    if (client.unauthenticated != unauthenticated_.end())
      unauthenticated_.erase(std::exchange(client.unauthenticated, unauthenticated_.end()));
  }

  void drop(std::uint64_t id) {
    const auto found = clients_.find(id);
    service_.gone(id);
    forget_unauthenticated(found->second);
    clients_.erase(found);  // closing the socket takes it out of the epoll
  }

  // The deadline of the oldest unauthenticated connection; it is shorter while others wait to be accepted.
  [[nodiscard]] TimePoint next_deadline() const {
    if (unauthenticated_.empty()) return TimePoint::max();
    const Duration hurried = std::min(options_.unauthenticated_timeout, options_.unauthenticated_time_min);
    const bool waited_for = accepting_stopped_ && !has_room();
    return deadline_after(unauthenticated_.front().came, waited_for ? hurried : options_.unauthenticated_timeout);
  }
  void drop_late_unauthenticated() {
    while (!unauthenticated_.empty() && next_deadline() <= now()) drop(unauthenticated_.front().id);
  }

  TcpStoreServer::Options options_;
  wire::Listener listener_;
  UniqueFd epoll_;
  Service service_;
  std::unordered_map<std::uint64_t, Client> clients_;
  UnauthenticatedList unauthenticated_;
  std::uint64_t next_id_ = listener_id + 1;
  bool accepting_stopped_ = false;      // too many unauthenticated connections, and others wait to be accepted
  std::size_t dropped_ = 0;             // connections, for want of descriptors
  std::vector<std::uint64_t> holding_;  // clients to be served again
  std::vector<std::byte> buffer_;
  std::vector<Request> requests_;
};

// Signals are for the threads of the program, not for this one.
std::thread start_without_signals(std::unique_ptr<Loop> loop) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread = start_thread("to serve the store", [loop = std::move(loop)] { loop->run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (const Error&) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace

TcpStoreServer::TcpStoreServer(const Options& options) : stop_(made(eventfd(0, EFD_CLOEXEC), "an eventfd")) {
  auto loop = std::make_unique<Loop>(options, stop_.get());
  address_ = loop->address();
  thread_ = start_without_signals(std::move(loop));
}

TcpStoreServer::~TcpStoreServer() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

}  // namespace tutti
