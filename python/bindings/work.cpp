// work.cpp: what async_op=True gives.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/work.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <utility>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "bindings/convert.hpp"
#include "bindings/gil.hpp"
#include "bindings/range.hpp"
#include "bindings/site.hpp"
#include "group/core.hpp"
#include "group/operation.hpp"
#include "group/runtime.hpp"

namespace tutti::python {

PendingWork::PendingWork(Started started, nb::object owners, nb::object result, nb::object finish)
    : started_(std::move(started)), owners_(std::move(owners)), result_(std::move(result)), finish_(std::move(finish)) {
  if (!started_.ended()) note_site(started_);
}

PendingWork::~PendingWork() {
  if (!started_.member || started_.ended()) return;  // moved from, or over
  const bool receives = started_.operations.size() == 1 && started_.operations[0]->request.verb == Verb::recv;
  if (receives && started_.member->core().cancel_message(*started_.operations[0])) return;
  leave_behind(std::move(started_), std::move(owners_));
}

namespace {

/// Unlike the deadline of a call, a limit on waiting may be 0: "only if it is there".
Duration wait_limit(nb::handle timeout) {
  double seconds = 0;
  const bool is_zero = !timeout.is_none() && nb::try_cast(timeout, seconds) && seconds == 0;
  return is_zero ? Duration::zero() : timeout_from(timeout);
}

/// Which ranks of the group an operation that has not ended is waiting for; empty: not known. Under the runtime's lock.
std::string awaited_by(const Operation& operation) {
  if (operation.is_message()) return operation.from_anyone ? "any rank" : fmt::format("rank {}", operation.peer);
  if (operation.call == nullptr) return operation.waits_for_turn ? "earlier calls on the group" : "";
  const std::vector<int> ranks = operation.call->progress().waiting_for;
  if (ranks.empty()) return "";
  return fmt::format("rank{} {}", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "));
}

/// One thread at a time brings the result to where it belongs: a callback may wait for the work that the main thread waits for.
class Turn {
 public:
  explicit Turn(std::mutex& mutex) : mutex_(mutex) {
    if (mutex_.try_lock()) return;
    const WithoutGil release;  // the other thread needs it to finish
    mutex_.lock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { mutex_.unlock(); }

 private:
  std::mutex& mutex_;
};

}  // namespace

nb::object PendingWork::wait(nb::handle timeout) {
  const Range range("wait");
  const Duration most = wait_limit(timeout);
  const bool has_limit = !timeout.is_none();
  const TimePoint limit = has_limit ? deadline_after(steady_clock().now(), most) : TimePoint::max();
  if (!wait_for(started_, limit)) {
    throw Timeout(fmt::format("{} has not ended{}; it goes on, and may be waited for again",
                              describe(started_.operations[0]->request.signature),
                              most > Duration::zero() ? " after waiting " + format_duration(most) : " yet"));
  }
  started_.rethrow();
  if (is_finished_) return result_;
  const Turn turn(*turn_);
  if (is_finished_) return result_;
  const bool came = !learns || learns->view.present();  // nothing comes from nobody
  if (learns && came) {
    learns->source = started_.operations[0]->peer;
    result_ = nb::cast(std::move(*learns));
  }
  learns = nullptr;
  if (!finish_.is_none() && came) result_ = finish_(result_);
  is_finished_ = true;  // what refuses to finish refuses again
  owners_ = nb::none();
  finish_ = nb::none();
  return result_;
}

bool PendingWork::test() {
  const WithoutGil release;
  return started_.test();
}

void PendingWork::give_up() {
  const WithoutGil release;
  interrupt(started_);
}

bool PendingWork::cancel() {
  const bool is_message = started_.operations.size() == 1 && started_.operations[0]->is_message();
  if (!is_message) {
    throw InvalidArgument(
        "cancel: only send, recv, isend and irecv can be cancelled; a collective is under way on all ranks, and one of "
        "them cannot take it back: group.abort(reason) ends it everywhere, with the group");
  }
  const WithoutGil release;
  return started_.member->core().cancel_message(*started_.operations[0]);
}

Received PendingWork::received() const {
  return started_.operations.empty() ? Received{} : started_.operations[0]->received();
}

std::string_view PendingWork::verb() const {
  return started_.operations.empty() ? std::string_view("sendrecv") : name_of(started_.operations[0]->request.verb);
}

std::string PendingWork::text() const {
  if (started_.operations.empty()) return "sendrecv, ended";
  const Operation& first = *started_.operations[0];
  const std::string call = describe(first.request.signature);
  if (started_.member->core().runtime().is_forked()) return call + ", of the process that this one is a fork of";
  if (!started_.ended()) {
    const WithoutGil release;
    const auto guard = started_.member->core().runtime().lock();
    if (!started_.ended()) {
      const std::string awaited = awaited_by(first);
      return fmt::format("{}, under way{}{}", call, awaited.empty() ? "" : ", waiting for ", awaited);
    }
  }
  try {
    started_.rethrow();
  } catch (const std::exception& error) {
    return fmt::format("{}, failed: {}", call, error.what());
  }
  return fmt::format("{}, ended", call);
}

void bind_work(nb::module_& m) {
  nb::class_<PendingWork>(m, "Work", "A call under way. Dropped, it keeps its arrays alive and never blocks.")
      .def("wait", &PendingWork::wait, nb::arg("timeout") = nb::none(),
           "Waits for the call and gives its result. With a timeout in seconds (0: without waiting), raises Timeout if "
           "it has "
           "not ended by then; the call goes on.")
      .def("test", &PendingWork::test, "Whether it has ended, well or not. Makes progress, never blocks.")
      .def(
          "give_up", &PendingWork::give_up,
          "The caller leaves this call: its arrays are not touched any more. A message is kept for the next receive, a "
          "collective "
          "that has not ended breaks its group.")
      .def("cancel", &PendingWork::cancel,
           "Takes a message back. True: as if it had never been, and wait() raises Aborted. False: it goes on; a send "
           "that "
           "its receiver has heard of, and no receive has found, is given back a little later, as wait() tells.")
      .def_prop_ro(
          "source", [](const PendingWork& work) { return work.received().source; },
          "After a receive: the rank whose message it was.")
      .def_prop_ro(
          "tag", [](const PendingWork& work) { return work.received().tag; }, "After a receive: the message's tag.")
      .def_prop_ro(
          "count", [](const PendingWork& work) { return work.received().count; },
          "After a receive: how many elements came.")
      .def_prop_ro("verb", &PendingWork::verb)
      .def("__repr__", [](const PendingWork& work) { return fmt::format("<tutti.Work {}>", work.text()); });
}

}  // namespace tutti::python
