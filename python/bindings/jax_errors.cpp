// jax_errors.cpp: errors on their way through XLA, and back to Python.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/jax_errors.hpp"

#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include <tutti/error.hpp>

namespace tutti::python {
namespace {

using xla::ffi::ErrorCode;

struct Kept {
  std::string text;
  std::exception_ptr error;
};

/// The latest errors. A broken group says the same again and again: each text is kept once.
struct Recent {
  static constexpr std::size_t most = 32;
  std::mutex mutex;
  std::deque<Kept> errors;
  std::string unseen;                    // of the latest call, if it failed
  std::atomic<bool> has_unseen = false;  // what goes well, goes without the lock
};

Recent& recent() {
  static auto* instance = new Recent;  // never destroyed: XLA's threads may outlive static objects
  return *instance;
}

void keep(std::string text, const std::exception_ptr& error) {
  Recent& all = recent();
  const std::lock_guard guard(all.mutex);
  all.unseen = text;
  all.has_unseen = true;
  std::erase_if(all.errors, [&](const Kept& kept) { return kept.text == text; });
  all.errors.push_back({.text = std::move(text), .error = error});
  if (all.errors.size() > Recent::most) all.errors.pop_front();
}

struct Named {
  ErrorCode code;
  std::string_view name;
  std::string text;
};

Named name(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const PeerLost& e) {
    return {ErrorCode::kUnavailable, "PeerLost", e.what()};
  } catch (const InvalidArgument& e) {
    return {ErrorCode::kInvalidArgument, "InvalidArgument", e.what()};
  } catch (const Mismatch& e) {
    return {ErrorCode::kFailedPrecondition, "Mismatch", e.what()};
  } catch (const Timeout& e) {
    return {ErrorCode::kDeadlineExceeded, "Timeout", e.what()};
  } catch (const Aborted& e) {
    return {ErrorCode::kAborted, "Aborted", e.what()};
  } catch (const Unsupported& e) {
    return {ErrorCode::kUnimplemented, "Unsupported", e.what()};
  } catch (const std::exception& e) {
    return {ErrorCode::kInternal, "Error", e.what()};
  }
}

}  // namespace

xla::ffi::Error error_for_xla(const std::exception_ptr& thrown) {
  Named named = name(thrown);
  std::string said = fmt::format("tutti.{}: {}", named.name, named.text);
  keep(std::move(named.text), thrown);
  return {named.code, std::move(said)};
}

void rethrow_if_ours(std::string_view said) {
  Recent& all = recent();
  std::exception_ptr found;
  {
    const std::lock_guard guard(all.mutex);
    for (const Kept& kept : all.errors) {
      if (said.find(kept.text) != std::string_view::npos) found = kept.error;
    }
  }
  if (!found) return;
  note_success();
  std::rethrow_exception(found);
}

void note_success() {
  if (recent().has_unseen.load(std::memory_order_relaxed)) (void)take_unseen_failure();
}

std::string take_unseen_failure() {
  Recent& all = recent();
  const std::lock_guard guard(all.mutex);
  all.has_unseen = false;
  return std::exchange(all.unseen, std::string());
}

}  // namespace tutti::python
