// prepared_calls.cpp: the shapes of calls that a group has met.
// SPDX-License-Identifier: Apache-2.0
#include "group/prepared_calls.hpp"

#include <algorithm>
#include <utility>

#include "backend/relocate.hpp"

namespace tutti {
namespace {

/// Arrays, a reduction and a root, and nothing else.
bool is_simple(const Request& r) {
  return r.axis == 0 && r.concat_axis == 0 && !r.stack && !r.uneven && r.structure == 0 && !r.sizes_follow &&
         r.kind == 0 && !r.allocate && r.sizes.empty() && r.recv_sizes.empty() && r.pairs.empty();
}

/// The same for all calls of one shape.
std::uint64_t digest_of(const CallTerms& terms) {
  Hash hash;
  hash.add(std::uint64_t(terms.verb) | std::uint64_t(terms.op.kind()) << 8 | std::uint64_t(terms.input.dtype()) << 16 |
           std::uint64_t(terms.differentiated) << 24 | std::uint64_t(std::uint32_t(terms.root)) << 32);
  hash.add(std::uint64_t(terms.input.count())).add(std::uint64_t(terms.output.count()));
  if (terms.rest != nullptr) hash.add(terms.rest->structure);
  return hash.value();
}

}  // namespace

CallTerms terms_of(const Request& request) {
  return {.verb = request.verb,
          .input = request.input,
          .output = request.output,
          .op = request.op,
          .root = request.root,
          .differentiated = request.differentiated,
          .rest = is_simple(request) ? nullptr : &request};
}

Request request_in_full(const CallTerms& terms) {
  Request request = terms.rest != nullptr ? *terms.rest : Request{};
  request.verb = terms.verb;
  request.input = terms.input;
  request.output = terms.output;
  request.op = terms.op;
  request.root = terms.root;
  request.differentiated = terms.differentiated;
  return request;
}

CachedCall::CachedCall(const CallTerms& asked, Request checked, Backend& backend)
    : asked_(request_in_full(asked)),
      checked_(std::move(checked)),
      allocates_(asked_.allocate != nullptr),
      is_simple_(asked.rest == nullptr),
      position_(asked.input, asked.output),
      hash_(hash_of_call(checked_.signature)),
      backend_(backend) {
  asked_.allocate = checked_.allocate = nullptr;  // the caller's, of one call
}

bool CachedCall::has_same_rest(const Request& r) const {
  return !is_simple_ && asked_.axis == r.axis && asked_.concat_axis == r.concat_axis && asked_.stack == r.stack &&
         asked_.uneven == r.uneven && asked_.structure == r.structure && asked_.sizes_follow == r.sizes_follow &&
         asked_.kind == r.kind && allocates_ == (r.allocate != nullptr) && asked_.sizes == r.sizes &&
         asked_.recv_sizes == r.recv_sizes && asked_.pairs == r.pairs;
}

Request CachedCall::request_of(const CallTerms& terms) const {
  Request request = checked_;
  const Buffers buffers = buffers_of(terms);
  if (request.input.present()) request.input = relocate(request.input, buffers.input);
  if (request.output.present()) request.output = relocate(request.output, buffers.output);
  if (buffers.allocate != nullptr) request.allocate = *buffers.allocate;
  return request;
}

std::unique_ptr<PreparedCall> CachedCall::take() {
  auto call = std::move(idle_.back());
  idle_.pop_back();
  return call;
}

CachedCall* PreparedCalls::search(const CallTerms& terms) {
  const std::uint64_t digest = digest_of(terms);
  for (std::size_t i = 0; i < digests_.size(); ++i) {
    if (digests_[i] != digest || !calls_[i]->matches(terms)) continue;
    CachedCall* const found = calls_[i].get();
    if (latest_ != nullptr) latest_->followed_by = found;
    return latest_ = found;
  }
  return nullptr;
}

const CachedCall* PreparedCalls::find(const Signature& signature) const {
  for (const auto& call : calls_) {
    Signature like = call->checked().signature;
    like.sequence = signature.sequence;
    if (like.is_same_call(signature)) return call.get();
  }
  return nullptr;
}

CachedCall& PreparedCalls::add(std::shared_ptr<CachedCall> call, const CallTerms& terms) {
  CachedCall& added = *call;
  if (latest_ != nullptr) latest_->followed_by = &added;
  latest_ = &added;
  for (std::size_t tries = 0; calls_.size() >= capacity && tries < calls_.size(); ++tries) {
    const std::size_t place = next_++ % calls_.size();
    if (calls_[place].use_count() > 1) continue;  // under way, or held by the program
    forget(*calls_[place]);
    calls_[place] = std::move(call);
    digests_[place] = digest_of(terms);
    return added;
  }
  calls_.push_back(std::move(call));
  digests_.push_back(digest_of(terms));
  return added;
}

void PreparedCalls::forget(const CachedCall& call) {
  for (const auto& each : calls_) {
    if (each->followed_by == &call) each->followed_by = each.get();
  }
}

void PreparedCalls::clear() {
  latest_ = nullptr;
  calls_.clear();
  digests_.clear();
}

}  // namespace tutti
