// question.hpp: asking another rank of a group how far it is with a call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "group/group_state.hpp"
#include "group/operation.hpp"

namespace tutti {

/// So long a call waits before the others are asked about it, and asked again.
inline constexpr Duration question_interval = std::chrono::milliseconds(100);
/// The number of no question: of an answer that was given before, and is another one now.
inline constexpr std::uint64_t no_question = 0;

/// By which questions and answers name the call.
std::uint64_t stall_key(const Operation& operation);

/// Asks a rank of the group; gives the question's number. The answer comes to StallWatch::take_answer.
std::uint64_t ask(GroupState& state, int rank, const Operation& operation);

}  // namespace tutti
