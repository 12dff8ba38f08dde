// messages.hpp: messages between two ranks: whom they go to, what a receive learns, and messages that a probe has found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/request.hpp>
#include <tutti/view.hpp>

namespace tutti {

class GroupCore;
class Operation;
struct MessageTerms;

/// As the source of a receive or probe: any member.
inline constexpr int any_source = -1;
/// As source or destination: nothing is sent, and nothing arrives. What a mesh gives as the neighbour beyond an open edge.
inline constexpr int nobody = -2;
/// As the tag of a receive or probe: any.
inline constexpr std::uint32_t any_tag = 0xffffffffu;
inline constexpr std::uint32_t tag_max = 0x7fffffffu;

struct Send {
  View data;
  int to = 0;
  std::uint32_t tag = 0;
  TimeLimit timeout{};
};
/// `data` may have more room than the message needs; Work::received() tells how many elements came, and from whom.
struct Receive {
  View data;
  int from = 0;
  std::uint32_t tag = 0;
  TimeLimit timeout{};
};
struct MessageOptions {
  std::uint32_t tag = 0;
  TimeLimit timeout{};
};

/// Makes memory for an array once its dtype, its shape and the kind of array that was sent are known.
using Allocate = decltype(Request::allocate);

/// What came. From nobody: no elements.
struct Received {
  int source = nobody;
  std::uint32_t tag = any_tag;
  std::int64_t count = 0;  // elements
  friend bool operator==(const Received&, const Received&) = default;
};

/// What recv<T>() can give: one element, or a vector of as many as come.
template <class T>
inline constexpr bool is_received_vector = false;
template <Element T>
requires(!std::is_same_v<T, bool>) inline constexpr bool is_received_vector<std::vector<T>> = true;
template <class T>
concept ReceivedByValue = Element<T> || is_received_vector<T>;

/// A message that probe() has found. It is out of reach of other receives; this handle receives it. Dropped, it goes back, before all
/// others like it. Move-only.
class Message {
 public:
  Message() = default;
  Message(std::shared_ptr<GroupCore> group, std::shared_ptr<Operation> probe)
      : group_(std::move(group)), probe_(std::move(probe)) {}
  Message(Message&&) = default;
  Message& operator=(Message&& other) noexcept;
  ~Message();

  [[nodiscard]] int source() const;
  [[nodiscard]] std::uint32_t tag() const;
  [[nodiscard]] std::int64_t count() const;  // elements
  [[nodiscard]] DType dtype() const;
  /// The lengths of the axes of the array that was sent.
  [[nodiscard]] std::vector<std::int64_t> shape() const;
  /// Which framework's array it was: a number of the Python package's own.
  [[nodiscard]] std::uint8_t kind() const;
  /// False after recv(), which takes the message.
  [[nodiscard]] bool valid() const { return probe_ != nullptr; }

  /// Into memory with room for `count()` elements, or more. Too little: Mismatch, and the message is gone.
  Received recv(View out, TimeLimit timeout = {});
  template <ReceivedByValue T>
  [[nodiscard]] T recv(TimeLimit timeout = {});

  [[nodiscard]] const std::shared_ptr<Operation>& probe() const { return probe_; }
  [[nodiscard]] const std::shared_ptr<GroupCore>& group() const { return group_; }

 private:
  friend class Group;
  Received recv_by(const Allocate& allocate, Duration timeout);
  Received receive(MessageTerms terms);
  std::shared_ptr<GroupCore> group_;
  std::shared_ptr<Operation> probe_;
};

}  // namespace tutti
