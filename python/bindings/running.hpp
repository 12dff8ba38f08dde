// running.hpp: calls under way on behalf of Python: started without the GIL, waited for with an ear for Ctrl-C.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tutti/clock.hpp>
#include <tutti/error.hpp>
#include <tutti/messages.hpp>
#include <tutti/view.hpp>

#include "bindings/array.hpp"
#include "bindings/registry.hpp"
#include "parallel/call.hpp"

namespace tutti {
class Operation;
struct MessageTerms;
}  // namespace tutti
namespace tutti::parallel {
struct Slabs;
}

namespace tutti::python {

using parallel::Call;
using parallel::call_named;
using parallel::decode_call;

/// What a call has besides the Call itself.
struct Terms {
  View input{}, output{};
  bool differentiated = false;
  Duration timeout{};             // zero: the group's
  std::shared_ptr<Array> learns;  // filled in with the result, where its shape is learned from the others
  const Request* rest = nullptr;  // what a call that has no more itself is asked for besides: the structure of a tree
};

/// Operations of one call (a sendrecv has two), and the group they run on.
struct Started {
  std::shared_ptr<Member> member;
  std::vector<std::shared_ptr<Operation>> operations;

  [[nodiscard]] bool ended() const;
  /// Makes progress.
  [[nodiscard]] bool test();
  /// Throws what went wrong.
  void rethrow() const;
};

/// From one array of any strides to another of the same shape.
void copy_elements(const View& from, const View& to);

// Without the GIL:
/// Begins a call, made at that line of the program. What it works on must stay alive until it has ended.
Started start_call(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms, std::uint32_t site = 0);
/// The same, but spins for a limited time first: if the call ends in it, the result has no operations.
Started run_within_spin_budget(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms,
                               std::uint32_t site = 0);
Started start_message(const std::shared_ptr<Member>& member, const MessageTerms& message);
/// What fills the margins along one axis of a mesh.
void start_exchange(Started& started, const parallel::Slabs& slabs, Duration timeout);
Started start_sendrecv(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms, std::uint32_t site);
Started run_sendrecv(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms,
                     std::uint32_t site);  // … likewise

// With the GIL, which is released while waiting:
/// Waits until it has ended, at most to `limit`; true: it has. Ctrl-C throws.
bool wait_for(Started& started, TimePoint limit);
/// Waits for what is not over yet, and throws what went wrong. The arrays are the caller's again in any case: what an exception of a
/// signal's handler leaves is withdrawn, or breaks its group.
void complete(Started& started);
/// An exception leaves the call, and the arrays are the caller's again. Without the GIL.
void interrupt(Started& started);
/// A blocking call from beginning to end. The caller keeps the arrays alive.
void run_call(const std::shared_ptr<Member>& member, const Call& call, const Terms& terms);
/// A blocking message likewise.
Received run_message(const std::shared_ptr<Member>& member, MessageTerms message);
/// Makes `result` the array that a message turns out to be.
Allocate allocate_as(std::shared_ptr<Array> result);
/// Tells the others that this rank refuses its part of the call, before the core has seen it.
void decline(const std::shared_ptr<Member>& member, const Call& call, const std::string& reason);
/// What an exception of Python's says, such as "MemoryError: Unable to allocate 3 GiB".
std::string what_was_raised(const nanobind::python_error& raised);
/// What `prepare` gives; if it refuses the arguments, or finds no memory for the result, the others are told.
template <class Prepare>
auto prepared(const std::shared_ptr<Member>& member, const Call& call, Prepare prepare) {
  try {
    return prepare();
  } catch (const nanobind::python_error& raised) {
    decline(member, call, what_was_raised(raised));
    throw;
  } catch (const std::exception& error) {
    decline(member, call, error.what());
    throw;
  }
}
/// Keeps what a call works on until it has ended, without waiting for it.
void leave_behind(Started started, nb::object owners);
/// Lets go of what ended meanwhile; `all`: of everything.
void forget_ended(bool all = false);

}  // namespace tutti::python
