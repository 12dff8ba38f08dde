// agent_board.cpp: a record in the store of torchrun's agent.
// SPDX-License-Identifier: Apache-2.0
//
// The agent serves PyTorch's TCPStore. Of its protocol only this is spoken; numbers are in the machine's own byte order:
//
//   validate  u8 0 | u32 0x3c85f7ce             no answer; first on every connection
//   set       u8 1 | key | value                no answer
//   get       u8 3 | key                        answer: value; hangs up if there is none
//   wait      u8 6 | u64 count | key…           answer: u8 0 when all are there
//
// where a key or value is a u64 length and its bytes.
#include <fmt/format.h>
#include <poll.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <tutti/error.hpp>

#include "rendezvous/boards.hpp"
#include "wire/socket.hpp"

namespace tutti::rendezvous {
namespace {

enum class Query : std::uint8_t { validate = 0, set = 1, get = 3, wait = 6 };
constexpr std::uint32_t magic = 0x3c85f7ce;
constexpr std::uint64_t value_bytes_max = 4096;

template <class T>
requires std::is_trivially_copyable_v<T>
void append(std::string& message, T value) { message.append(reinterpret_cast<const char*>(&value), sizeof value); }

void append_text(std::string& message, std::string_view text) {
  append(message, std::uint64_t{text.size()});
  message += text;
}

class AgentBoard : public Board {
 public:
  AgentBoard(wire::HostPort where, BoardKey key) : where_(std::move(where)), key_("tutti/" + key.key) {}

  void post(const RendezvousRecord& record, TimePoint deadline) override {
    std::string message;
    append(message, Query::set);
    append_text(message, key_);
    append_text(message, record.text());
    say(message, deadline);
    // A set has no answer: reading it back is how we know that it arrived.
    if (get(deadline) != record.text()) throw_agent("it gave back something else than was set");
  }

  RendezvousRecord fetch(TimePoint deadline) override {
    std::string message;
    append(message, Query::wait);
    append(message, std::uint64_t{1});
    append_text(message, key_);
    say(message, deadline);
    if (hear<std::uint8_t>(deadline) != 0) throw_agent("it cancelled the wait for rank 0's note");
    if (auto record = RendezvousRecord::parse(get(deadline))) return *std::move(record);
    throw_agent("rank 0's note is none of this version; check that all ranks use the same Tutti");
  }

  [[nodiscard]] std::string describe() const override { return "the store of torchrun's agent at " + where_.text(); }

 private:
  [[noreturn]] void throw_agent(std::string_view why) const {
    throw RendezvousError(
        fmt::format("torchrun's agent at {} did not help the ranks to meet: {}; give init_method "
                    "\"tcp://host:port\" with a free port on rank 0's host to meet without it",
                    where_.text(), why));
  }

  std::string get(TimePoint deadline) {
    std::string message;
    append(message, Query::get);
    append_text(message, key_);
    say(message, deadline);
    const auto bytes = hear<std::uint64_t>(deadline);
    if (bytes > value_bytes_max) throw_agent(fmt::format("it announced a value of {} bytes", bytes));
    std::string value(bytes, '\0');
    read_all(std::as_writable_bytes(std::span(value)), deadline);
    return value;
  }

  void say(std::string_view message, TimePoint deadline) {
    if (!socket_) {
      socket_ = wire::connect(wire::resolve(where_, deadline).front(), deadline);
      std::string hello;
      append(hello, Query::validate);
      append(hello, magic);
      write_all(hello, deadline);
    }
    write_all(message, deadline);
  }

  template <class T>
  T hear(TimePoint deadline) {
    T value{};
    read_all(std::as_writable_bytes(std::span(&value, 1)), deadline);
    return value;
  }

  void write_all(std::string_view text, TimePoint deadline) {
    for (auto rest = std::as_bytes(std::span(text)); !rest.empty();) {
      const wire::Transfer sent = wire::write_some(socket_.get(), rest);
      if (sent.closed()) throw_agent(sent.reason());
      rest = rest.subspan(sent.bytes);
      if (!sent.moved() && wire::wait_for(socket_.get(), POLLOUT, deadline) == 0) throw_agent("it takes no bytes");
    }
  }

  void read_all(std::span<std::byte> into, TimePoint deadline) {
    while (!into.empty()) {
      const wire::Transfer got = wire::read_some(socket_.get(), into);
      if (got.closed()) throw_agent(got.reason());
      into = into.subspan(got.bytes);
      if (!got.moved() && wire::wait_for(socket_.get(), POLLIN, deadline) == 0) throw_agent("no answer in time");
    }
  }

  wire::HostPort where_;
  std::string key_;
  UniqueFd socket_;
};

}  // namespace

std::unique_ptr<Board> make_agent_board(wire::HostPort where, BoardKey key) {
  return std::make_unique<AgentBoard>(std::move(where), std::move(key));
}

}  // namespace tutti::rendezvous
