// contract_case.hpp: one call as a value: what every rank passes, and what every rank must get. Knows no transport.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tutti/group.hpp>

#include "guarded_array.hpp"

namespace tutti::contract {

/// The axes of the arrays; n is the length along the axis that is joined or split.
enum class Shape : std::uint8_t {
  line,     // [n]
  rows,     // [n, 3], along the first axis
  columns,  // [3, n], along the last
  middle,   // [2, n, 3]
  stacked,  // [n, 2] per rank, joined along a new first axis
};
inline constexpr int shape_count = 5;
std::string_view name_of(Shape shape);

/// For the verbs with one block per rank.
enum class Sizing : std::uint8_t {
  even,
  given,      // blocks differ, and every rank says how
  exchanged,  // blocks differ, and the ranks have to ask; for broadcast and scatter: only the root knows anything
};
inline constexpr int sizing_count = 3;
std::string_view name_of(Sizing sizing);

struct Case {
  Verb verb = Verb::barrier;
  DType dtype = DType::float32;
  Op op = Op::sum;
  std::int64_t length = 0;  // n of Shape; of one block where the verb has blocks
  Shape shape = Shape::line;
  Memory input_memory = Memory::contiguous, output_memory = Memory::contiguous;
  bool in_place = false;
  bool other_axis = false;  // all_to_all: joined along another axis than it was split along
  bool asynchronous = false;
  Sizing sizing = Sizing::even;
  std::uint32_t root = 0;  // modulo the group's size
  std::uint64_t seed = 0;
};

/// Everything that is needed to see which case it was.
std::string describe(const Case& call);

/// Whether the options go together; the others are left out of grids.
bool makes_sense(const Case& call);

/// One rank's side of a case. Stays where it is: the request points into it.
class Part {
 public:
  Part(const Case& call, int rank, int size);
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  [[nodiscard]] Request request();
  /// After the call: what is wrong with this rank's arrays, guards and inputs included.
  [[nodiscard]] std::optional<std::string> difference() const;
  /// After a call that failed: whether anything but an output was written.
  [[nodiscard]] std::optional<std::string> damage() const;
  /// See GuardedArray.
  void scribble(std::byte value = std::byte{0x5e});
  [[nodiscard]] std::uint64_t fingerprint() const;

 private:
  using Lengths = std::vector<std::int64_t>;

  [[nodiscard]] std::int64_t block_length(int from, int to) const;
  [[nodiscard]] Lengths lengths_sent_by(int rank) const;
  [[nodiscard]] Lengths lengths_received() const;
  [[nodiscard]] Lengths shape_with(std::int64_t length) const;
  [[nodiscard]] Lengths input_shape(int rank) const;
  [[nodiscard]] Lengths output_shape() const;
  [[nodiscard]] bool has_input() const;
  [[nodiscard]] bool has_output() const;
  [[nodiscard]] Pairs pairs() const;

  void make_arrays();
  void place_in(GuardedArray& array, std::int64_t first_index, std::int64_t count);
  void expect_reduction(std::int64_t output_index, std::int64_t input_index, int ranks);
  void expect_moved(std::int64_t output_index, int from, std::int64_t input_index);
  void set_expectation();
  void expect_joined();
  void expect_split();
  void expect_exchanged();
  void expect_permuted();
  void set_sizes(Request& request) const;
  void set_views(Request& request);

  Case call_;
  int rank_, size_, root_;
  int axis_ = 0, concat_axis_ = 0;
  std::optional<Op> op_;  // where the verb reduces
  std::vector<std::byte> contributions_;
  std::unique_ptr<GuardedArray> input_, output_;  // in place there is one of the two, which holds the other
};

/// Makes the call, blocking or not, and tells what came out wrong.
std::optional<std::string> perform(Group& group, const Case& call);

}  // namespace tutti::contract
