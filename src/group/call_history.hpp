// call_history.hpp: the numbered calls of a group: the next number, the latest signatures, and one digest of all of them.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks that asked for different things do not always notice in that very call: two ranks that both take themselves for the root
// of a broadcast both send and return. So every signature carries a digest of all calls before it, and a rank that compares signatures
// compares that, too: what differed is found at the next contact, a goodbye at the latest.
//
// The digest is a sum over the calls, so that one which turns out to be refused by some rank can be taken out again. A rank that does
// not know of the refusal yet has another sum for the same program; so which calls were refused goes along, and sums are compared
// only where that is the same (histories_agree in tutti/request.hpp). A signature has room for a part of the digest only; ranks that
// ask each other, and ranks that leave, compare all of it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include <tutti/request.hpp>

#include "base/hash.hpp"

namespace tutti {

/// What a rank knows of the first `calls` calls of a group, to be compared with what another one knows.
struct CallDigest {
  std::uint64_t calls = 0;
  std::uint64_t sum = 0;      // over those that took place
  std::uint64_t refused = 0;  // over the numbers of the others
  bool is_known = true;       // false: the group broke, or it is too long ago
  friend bool operator==(const CallDigest&, const CallDigest&) = default;
};
enum class Comparison : std::uint8_t {
  same,
  different,
  not_yet,  // one of the two has not heard of a refusal, or has not come so far
  unknown,  // it cannot be told any more
};

/// Of everything but the call's number and what came before it.
inline std::uint64_t hash_of_call(const Signature& signature) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(signature);
  return scramble(words[1] + scramble(words[2] + scramble(signature.detail)));
}

class CallHistory {
 public:
  static constexpr std::size_t length = 256;            // signatures that are kept in any case,
  static constexpr std::size_t older_length = 1 << 16;  // and as many of those before that are not settled

  CallHistory() { log_.fill(Signature{.sequence = none}); }

  /// The number of the next call.
  [[nodiscard]] std::uint64_t next() const { return next_; }
  /// Gives the call its number, and the digest of those before it. The number is written after the rest was copied: a copy of what
  /// was just written in parts would have to wait for it.
  void number(Signature& signature, std::uint64_t hash) {
    Signature& entry = log_[next_ % length];
    if (entry.sequence >= settled_) [[unlikely]]  // also where there was none
      make_room(entry);
    entry = signature;
    entry.history = signature.history = tag();
    entry.sequence = signature.sequence = next_;
    sum_ += term(next_++, hash);
  }
  void number(Signature& signature) { number(signature, hash_of_call(signature)); }
  /// All calls below this number have ended here.
  void note_ended(std::uint64_t below) { ended_ = below; }
  void note_all_ended() { ended_ = next_; }
  /// This rank takes no part in its next call: whatever arrives for that number is dropped unseen. Returns the number.
  std::uint64_t refuse();
  /// Another rank took no part in this call, which was numbered here.
  void take_out(std::uint64_t sequence);
  /// Nothing is known any more that could be compared: the group is broken.
  void give_up() { is_known_ = false; }

  /// What this rank called under that number; nullptr if it is too long ago, was refused, or has not been called yet.
  [[nodiscard]] const Signature* find(std::uint64_t sequence) const {
    const Signature& entry = log_[sequence % length];
    return entry.sequence == sequence ? &entry : find_older(sequence);
  }
  /// Of the calls below this number.
  [[nodiscard]] CallDigest digest_at(std::uint64_t calls) const;
  [[nodiscard]] Comparison compare(const CallDigest& theirs) const;
  /// The latest signatures, oldest first.
  [[nodiscard]] std::vector<Signature> recent() const;

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  static std::uint64_t term(std::uint64_t sequence, std::uint64_t hash) {
    return (hash ^ (sequence * 0x9e3779b97f4a7c15u)) * 0xc2b2ae3d27d4eb4fu;
  }
  [[nodiscard]] std::uint32_t tag() const {
    if (!is_known_) [[unlikely]]
      return Signature::unknown_history;
    return refused_tag_ | static_cast<std::uint32_t>(sum_ >> sum_shift_);
  }
  [[nodiscard]] static std::uint64_t mix(std::uint64_t refused) { return scramble(refused + 1); }
  void note_refused(std::uint64_t sequence);
  void make_room(const Signature& entry);
  [[nodiscard]] const Signature* find_older(std::uint64_t sequence) const;

  std::uint64_t next_ = 0;
  std::uint64_t sum_ = 0;
  std::set<std::uint64_t> refused_numbers_;  // the latest
  std::uint64_t refused_mix_ = 0;            // of all numbers that were refused, in any order
  std::uint32_t refused_tag_ = 0;            // what the tag says of them
  int sum_shift_ = 64 - Signature::history_bits;
  bool is_known_ = true;
  std::array<Signature, length> log_;
  // A call that gives every rank something of every other one has ended only if all have made it, and the calls before it were the same:
  // those are settled. What leaves the log and is not settled is kept here, because a rank that is far behind may have to be told.
  std::uint64_t settled_ = 0;  // all calls below
  std::uint64_t ended_ = 0, looked_at_ = 0;
  std::deque<Signature> older_;
};

}  // namespace tutti
