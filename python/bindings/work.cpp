// work.cpp: what async_op=True gives.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/work.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string_view.h>

#include <utility>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "bindings/convert.hpp"
#include "bindings/gil.hpp"
#include "bindings/site.hpp"
#include "group/operation.hpp"

namespace tutti::python {

PendingWork::PendingWork(Started started, nb::object owners, nb::object result, nb::object finish)
    : started_(std::move(started)), owners_(std::move(owners)), result_(std::move(result)), finish_(std::move(finish)) {
  if (!started_.ended()) note_site(started_);
}

PendingWork::~PendingWork() {
  if (!started_.member || started_.ended()) return;  // moved from, or over
  leave_behind(std::move(started_), std::move(owners_));
}

nb::object PendingWork::wait(nb::handle timeout) {
  const Duration most = timeout_from(timeout);
  const TimePoint limit = most > Duration::zero() ? deadline_after(steady_clock().now(), most) : TimePoint::max();
  if (!wait_for(started_, limit)) {
    throw Timeout(fmt::format("{} has not ended after waiting {}; it goes on, and may be waited for again",
                              describe(started_.operations[0]->request.signature), format_duration(most)));
  }
  started_.rethrow();
  if (is_finished_) return result_;
  if (learns) result_ = nb::cast(std::move(*std::exchange(learns, nullptr)));
  if (!finish_.is_none()) result_ = finish_(result_);
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

int PendingWork::source() const { return started_.operations.empty() ? -1 : started_.operations[0]->peer; }

std::string_view PendingWork::verb() const {
  return started_.operations.empty() ? std::string_view("sendrecv") : name_of(started_.operations[0]->request.verb);
}

void bind_work(nb::module_& m) {
  nb::class_<PendingWork>(m, "Work", "A call under way. Dropped, it keeps its arrays alive and never blocks.")
      .def("wait", &PendingWork::wait, nb::arg("timeout") = nb::none(),
           "Waits for the call and gives its result. With a timeout in seconds, raises Timeout if it has not ended by "
           "then; the "
           "call goes on.")
      .def("test", &PendingWork::test, "Whether it has ended, well or not. Makes progress, never blocks.")
      .def(
          "give_up", &PendingWork::give_up,
          "The caller leaves this call: its arrays are not touched any more. A message is kept for the next receive, a "
          "collective "
          "that has not ended breaks its group.")
      .def_prop_ro("source", &PendingWork::source, "After a receive: the rank whose message it was.")
      .def_prop_ro("verb", &PendingWork::verb);
}

}  // namespace tutti::python
