// call_history.cpp: refused calls, and what the record still knows.
// SPDX-License-Identifier: Apache-2.0
#include "group/call_history.hpp"

#include <algorithm>

namespace tutti {

std::uint64_t CallHistory::refuse() {
  log_[next_ % length] = Signature{.sequence = none};
  note_refused(next_);
  return next_++;
}

// Several ranks may refuse the same call.
void CallHistory::take_out(std::uint64_t sequence) {
  if (refused_numbers_.contains(sequence)) return;
  const Signature* const call = find(sequence);
  if (call == nullptr) return give_up();  // it cannot be told any more what it added
  sum_ -= term(sequence, hash_of_call(*call));
  log_[sequence % length] = Signature{.sequence = none};
  note_refused(sequence);
}

// Neither what stands for none, nor for unknown.
void CallHistory::note_refused(std::uint64_t sequence) {
  constexpr std::uint32_t unknown = Signature::unknown_history >> Signature::history_bits;
  constexpr std::size_t kept = 1024;
  refused_numbers_.insert(sequence);
  if (refused_numbers_.size() > kept) refused_numbers_.erase(refused_numbers_.begin());
  refused_mix_ ^= scramble(sequence + 1);
  refused_ = static_cast<std::uint32_t>(1 + refused_mix_ % (unknown - 1));
}

std::optional<std::uint32_t> CallHistory::tag_at(std::uint64_t calls) const {
  if (calls == next_) return tag();
  const Signature* const call = find(calls);
  return call != nullptr ? std::optional(call->history) : std::nullopt;
}

std::vector<Signature> CallHistory::recent() const {
  std::vector<Signature> all;
  for (std::uint64_t sequence = next_ - std::min<std::uint64_t>(next_, length); sequence < next_; ++sequence) {
    if (const Signature* const call = find(sequence)) all.push_back(*call);
  }
  return all;
}

}  // namespace tutti
