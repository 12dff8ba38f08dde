// prepared_calls.hpp: the shapes of calls that a group has met: each is checked, signed and laid out once.
// SPDX-License-Identifier: Apache-2.0
//
// Programs make the same calls over and over. What was found out for the first of a shape (that it is sound, its signature, the
// backend and what that has prepared) holds for all that differ from it in addresses only.
//
// Thread rule: under the progress lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/request.hpp>

#include "base/extent.hpp"
#include "group/call_history.hpp"
#include "record/layout.hpp"

namespace tutti {

/// How two arrays lie to each other. Worked out once for many of the same shapes and strides.
class Position {
 public:
  Position(const View& input, const View& output)
      : input_(extent_of(input)),
        output_(extent_of(output)),
        distance_(distance_between(input, output)),
        apart_(are_apart(input_, output_, distance_)) {}
  /// At the same distance, or apart like them.
  [[nodiscard]] bool holds_for(const View& input, const View& output) const {
    const std::int64_t distance = distance_between(input, output);
    return distance == distance_ || (apart_ && are_apart(input_, output_, distance));
  }

 private:
  Extent input_, output_;
  std::int64_t distance_ = 0;
  bool apart_ = true;
};

/// A call as the caller made it. Most have arrays, a reduction and a root only; of the others `rest` has everything.
struct CallTerms {
  Verb verb = Verb::barrier;
  const View& input;
  const View& output;
  const Op& op = Op::sum;
  int root = 0;
  bool differentiated = false;
  const Request* rest = nullptr;
};
/// `request` outlives the terms.
CallTerms terms_of(const Request& request);
Request request_in_full(const CallTerms& terms);

/// One shape of call.
class CachedCall : public std::enable_shared_from_this<CachedCall> {
 public:
  /// The request as it came, and as it was checked. `backend` outlives the call.
  CachedCall(const CallTerms& asked, Request checked, Backend& backend);

  [[nodiscard]] bool matches(const CallTerms& terms) const {
    return asked_.verb == terms.verb && asked_.op == terms.op && asked_.root == terms.root &&
           asked_.differentiated == terms.differentiated && terms.input.is_like(asked_.input) &&
           terms.output.is_like(asked_.output) && position_.holds_for(terms.input, terms.output) &&
           (terms.rest == nullptr ? is_simple_ : has_same_rest(*terms.rest));
  }
  /// The request as it came, with the arrays that the first call of this shape had.
  [[nodiscard]] const Request& asked() const { return asked_; }
  /// The checked request, with the arrays that the first call of this shape had.
  [[nodiscard]] const Request& checked() const { return checked_; }
  [[nodiscard]] Backend& backend() const { return backend_; }
  /// Gives the call its number; the result is valid until the next is numbered.
  [[nodiscard]] const Signature& number(CallHistory& calls) {
    calls.number(checked_.signature, hash_);
    return checked_.signature;
  }
  /// What a prepared call is started with, for a call of this shape.
  [[nodiscard]] Buffers buffers_of(const CallTerms& terms) const {
    const View& input = terms.input.present() ? terms.input : terms.output;  // a root may pass one array only
    return {.input = checked_.input.present() ? static_cast<const std::byte*>(input.data()) : nullptr,
            .output = checked_.output.present() ? static_cast<std::byte*>(terms.output.data()) : nullptr,
            .allocate = terms.rest != nullptr && terms.rest->allocate ? &terms.rest->allocate : nullptr};
  }
  /// The checked request with the arrays of another call of this shape.
  [[nodiscard]] Request request_of(const CallTerms& terms) const;

  /// One that is not under way. It stays here until take() or the end of the call, whichever comes first.
  [[nodiscard]] PreparedCall& idle() {
    if (idle_.empty()) [[unlikely]]
      idle_.push_back(backend_.prepare(checked_));
    return *idle_.back();
  }
  /// The one that idle() gave: it is under way for longer.
  [[nodiscard]] std::unique_ptr<PreparedCall> take();
  /// It is over.
  void give_back(std::unique_ptr<PreparedCall> call) { idle_.push_back(std::move(call)); }

  CachedCall* followed_by = this;  // the shape that came next, last time
  record::CallShape recorded{};    // what is written down of its calls

 private:
  [[nodiscard]] bool has_same_rest(const Request& request) const;

  Request asked_, checked_;
  bool allocates_, is_simple_;
  Position position_;
  std::uint64_t hash_;  // of the signature
  Backend& backend_;
  std::vector<std::unique_ptr<PreparedCall>> idle_;
};

/// The cache of one group.
class PreparedCalls {
 public:
  static constexpr std::size_t capacity = 256;

  /// The shape of such calls; null: it is new. Programs go through the same calls in the same order: what came after the latest
  /// one is tried first.
  [[nodiscard]] CachedCall* find(const CallTerms& terms) {
    if (latest_ != nullptr && latest_->followed_by->matches(terms)) [[likely]]
      return latest_ = latest_->followed_by;
    return search(terms);
  }
  /// A shape whose calls have this signature, but for number and history; null: none is known.
  [[nodiscard]] const CachedCall* find(const Signature& signature) const;
  /// A new one. Where there are too many, another goes that is neither under way nor held by the program.
  CachedCall& add(std::shared_ptr<CachedCall> call, const CallTerms& terms);
  void clear();
  [[nodiscard]] std::size_t size() const { return calls_.size(); }

 private:
  [[nodiscard]] CachedCall* search(const CallTerms& terms);
  void forget(const CachedCall& call);

  std::vector<std::shared_ptr<CachedCall>> calls_;
  std::vector<std::uint64_t> digests_;  // of their terms, so that a search looks at few of them
  std::size_t next_ = 0;                // where a place is looked for
  CachedCall* latest_ = nullptr;
};

}  // namespace tutti
