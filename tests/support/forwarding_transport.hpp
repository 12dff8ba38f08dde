// forwarding_transport.hpp: a transport that hands everything on to another one: what a Runtime can own of a simulated cluster.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/transport.hpp>

namespace tutti::messages {

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(Transport& endpoint) : endpoint_(endpoint) {}

  [[nodiscard]] std::string_view name() const override { return endpoint_.name(); }
  [[nodiscard]] int rank() const override { return endpoint_.rank(); }
  [[nodiscard]] int size() const override { return endpoint_.size(); }
  void listen(TransportListener* listener) override { endpoint_.listen(listener); }
  void send(Transfer& transfer) override { endpoint_.send(transfer); }
  void recv(Transfer& transfer) override { endpoint_.recv(transfer); }
  void cancel(Transfer& transfer) override { endpoint_.cancel(transfer); }
  bool withdraw(Transfer& transfer) override { return endpoint_.withdraw(transfer); }
  bool reserve(Transfer& probe) override { return endpoint_.reserve(probe); }
  void accept(Transfer& probe, Transfer& receive) override { endpoint_.accept(probe, receive); }
  void release(Transfer& probe) override { endpoint_.release(probe); }
  void give_back(Transfer& receive) override { endpoint_.give_back(receive); }
  void forget(std::uint64_t group, std::uint64_t up_to) override { endpoint_.forget(group, up_to); }
  void refuse_messages() override { endpoint_.refuse_messages(); }
  std::vector<Unreceived> unreceived(std::uint64_t group, std::uint32_t epoch) const override {
    return endpoint_.unreceived(group, epoch);
  }
  void post(int peer, std::span<const std::byte> message) override { endpoint_.post(peer, message); }
  void attach(int peer) override { endpoint_.attach(peer); }
  bool poll() override { return endpoint_.poll(); }
  void wait(TimePoint until, Events events) override { endpoint_.wait(until, events); }
  void wake() override { endpoint_.wake(); }
  void close(TimePoint deadline) override { endpoint_.close(deadline); }
  void abandon() override { endpoint_.abandon(); }

 protected:
  Transport& endpoint_;
};

}  // namespace tutti::messages
