// rank_program.hpp: one rank of a random program of messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tutti/group.hpp>

#include "base/random.hpp"
#include "model.hpp"

namespace tutti::message_programs {

class RankProgram {
 public:
  RankProgram(const Program& program, Group& world);
  void run();
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  /// What a receive asks for: some message that is still to come is like it.
  struct Wish {
    int from = any_source;
    std::optional<std::uint32_t> tag;
    [[nodiscard]] MessageOptions options() const { return {.tag = tag.value_or(any_tag)}; }
  };

  void play_round(const std::vector<Sent>& round);
  [[nodiscard]] Wish draw_wish(const Sent& message);
  void receive_one(Awaited& awaited);
  void receive_into(Awaited& awaited, const Wish& wish, std::int64_t room);
  void receive_by_value(Awaited& awaited, const Wish& wish);
  void receive_later(Awaited& awaited, const Wish& wish, std::int64_t room);
  void receive_found(Awaited& awaited, const Wish& wish);
  void refuse_one(Awaited& awaited, const Sent& like);
  void disturb();
  void check(Awaited& awaited, const Wish& wish, const Received& received, std::span<const std::int32_t> elements);
  void complain(const std::string& text);

  const Program& program_;
  Group& world_;
  Group apart_;  // for what is cancelled, so that no receive of the program can find it
  Random random_;
  std::int64_t largest_ = 0;
  std::vector<std::string> complaints_;
};

}  // namespace tutti::message_programs
