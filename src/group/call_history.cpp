// call_history.cpp: refused calls, and what the record still knows.
// SPDX-License-Identifier: Apache-2.0
#include "group/call_history.hpp"

#include <algorithm>

namespace tutti {

std::uint64_t CallHistory::refuse() {
  Signature& entry = log_[next_ % length];
  if (entry.sequence >= settled_) make_room(entry);
  entry = Signature{.sequence = none};
  note_refused(next_);
  return next_++;
}

namespace {

bool settles(const Signature& call) {
  switch (call.verb) {
    case Verb::barrier: return true;
    case Verb::all_reduce:
    case Verb::all_gather:
    case Verb::reduce_scatter:
    case Verb::all_to_all: return call.count > 0 && (call.flags & Signature::uneven) == 0;
    default: return false;
  }
}

}  // namespace

// Each call is looked at once, however often room is made.
void CallHistory::make_room(const Signature& entry) {
  if (entry.sequence == none) return;
  for (looked_at_ = std::max(looked_at_, entry.sequence); looked_at_ < ended_; ++looked_at_) {
    const Signature& call = log_[looked_at_ % length];
    if (call.sequence == looked_at_ && settles(call)) settled_ = looked_at_;
  }
  while (!older_.empty() && older_.front().sequence < settled_) older_.pop_front();
  if (entry.sequence < settled_) return;
  older_.push_back(entry);
  if (older_.size() > older_length) older_.pop_front();
}

const Signature* CallHistory::find_older(std::uint64_t sequence) const {
  const auto found = std::ranges::lower_bound(older_, sequence, {}, &Signature::sequence);
  return found != older_.end() && found->sequence == sequence ? &*found : nullptr;
}

// Several ranks may refuse the same call.
void CallHistory::take_out(std::uint64_t sequence) {
  if (refused_numbers_.contains(sequence)) return;
  const Signature* const call = find(sequence);
  if (call == nullptr) return give_up();  // it cannot be told any more what it added
  sum_ -= term(sequence, hash_of_call(*call));
  if (Signature& entry = log_[sequence % length]; entry.sequence == sequence) {
    entry = Signature{.sequence = none};
  } else {
    std::erase_if(older_, [sequence](const Signature& each) { return each.sequence == sequence; });
  }
  note_refused(sequence);
}

void CallHistory::note_refused(std::uint64_t sequence) {
  constexpr int bits = Signature::history_bits_refused;
  constexpr std::uint32_t unknown = (Signature::unknown_history & ~Signature::some_refused) >> bits;
  constexpr std::size_t kept = 1024;
  refused_numbers_.insert(sequence);
  if (refused_numbers_.size() > kept) refused_numbers_.erase(refused_numbers_.begin());
  refused_mix_ ^= mix(sequence);
  refused_tag_ = Signature::some_refused | static_cast<std::uint32_t>(refused_mix_ % unknown) << bits;
  sum_shift_ = 64 - bits;
}

// From the end backwards: what each later call added is taken off again.
CallDigest CallHistory::digest_at(std::uint64_t calls) const {
  CallDigest digest{.calls = calls, .sum = sum_, .refused = refused_mix_, .is_known = is_known_ && calls <= next_};
  if (!digest.is_known) return digest;
  for (std::uint64_t sequence = calls; sequence < next_; ++sequence) {
    if (const Signature* const call = find(sequence)) {
      digest.sum -= term(sequence, hash_of_call(*call));
    } else if (refused_numbers_.contains(sequence)) {
      digest.refused ^= mix(sequence);
    } else {
      digest.is_known = false;
      return digest;
    }
  }
  return digest;
}

Comparison CallHistory::compare(const CallDigest& theirs) const {
  if (theirs.calls > next_) return Comparison::not_yet;
  const CallDigest own = theirs.is_known ? digest_at(theirs.calls) : theirs;
  if (!own.is_known) return Comparison::unknown;
  if (own.refused != theirs.refused) return Comparison::not_yet;
  return own.sum == theirs.sum ? Comparison::same : Comparison::different;
}

std::vector<Signature> CallHistory::recent() const {
  std::vector<Signature> all;
  for (std::uint64_t sequence = next_ - std::min<std::uint64_t>(next_, length); sequence < next_; ++sequence) {
    if (const Signature* const call = find(sequence)) all.push_back(*call);
  }
  return all;
}

}  // namespace tutti
