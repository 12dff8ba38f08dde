// prepared.cpp: calls that are prepared once and started again and again, as Python has them.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <utility>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "bindings/bind.hpp"
#include "bindings/convert.hpp"
#include "bindings/gil.hpp"
#include "bindings/running.hpp"
#include "bindings/site.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti::python {
namespace {

/// The arrays of one start, and the Python objects behind them.
struct Arrays {
  View input{}, output{};
  nb::object owners = nb::none();
};

Arrays hold_both(nb::handle x, nb::handle out) {
  Held input = hold(x, Use::read, Memory::any), output = hold(out, Use::write, Memory::any);
  return {.input = input.view,
          .output = output.view,
          .owners = nb::make_tuple(std::move(input.owner), std::move(output.owner))};
}

class PreparedArrays {
 public:
  PreparedArrays(std::shared_ptr<Member> member, Call call, nb::object x, nb::object out, nb::handle timeout)
      : member_(std::move(member)), call_(std::move(call)), x_(std::move(x)), out_(std::move(out)) {
    if (call_.is_sendrecv || call_.reverse || learns_sizes(call_)) {
      throw Unsupported(
          fmt::format("prepare: {} cannot be prepared{}; make the call itself", name_of(call_),
                      learns_sizes(call_) ? " without sizes, which are learned from the other ranks" : ""));
    }
    timeout_ = timeout_from(timeout);
    const Arrays arrays = hold_both(x_, out_);
    Request request = request_for(arrays);
    const WithoutGil release;
    shape_ = member_->core().prepare(terms_of(request));
  }
  PreparedArrays(PreparedArrays&&) = default;
  PreparedArrays& operator=(PreparedArrays&&) = delete;
  /// Never blocks: a call that is under way goes on, and what it works on is kept until then.
  ~PreparedArrays() {
    if (started_.member && !started_.ended()) leave_behind(std::move(started_), std::move(owners_));
  }

  void start(nb::handle x, nb::handle out) {
    forget_ended();
    // Whether it has ended by now depends on the other ranks; whether this rank has waited for it does not.
    if (is_awaited_) {
      throw InvalidArgument(fmt::format(
          "{}: the prepared call was started and not waited for; wait() first, or prepare another one to have "
          "two under way",
          name_of(call_)));
    }
    result_ = nb::borrow(!out.is_none() ? out : x.is_none() || !x_.is(out_) ? nb::handle(out_) : x);
    Arrays arrays = prepared(member_, call_, [&] { return hold_both(x.is_none() ? nb::handle(x_) : x, result_); });
    Request request = request_for(arrays);
    owners_ = std::move(arrays.owners);
    {
      const WithoutGil release;
      GroupCore& core = member_->core();
      GroupCore::Entry entry;
      auto operation = core.start(entry, *shape_, terms_of(request), timeout_);
      started_ = {.member = member_, .operations = {std::move(operation)}};
      is_awaited_ = true;
    }
    if (!started_.ended()) note_site(started_);
  }

  nb::object wait(nb::handle timeout) {
    if (!started_.member) throw InvalidArgument("wait() on a prepared call that was not started");
    const Duration most = timeout_from(timeout);
    const TimePoint limit = most > Duration::zero() ? deadline_after(steady_clock().now(), most) : TimePoint::max();
    if (!wait_for(started_, limit)) {
      throw Timeout(fmt::format("{} has not ended after waiting {}; it goes on, and may be waited for again",
                                describe(started_.operations[0]->request.signature), format_duration(most)));
    }
    is_awaited_ = false;
    owners_ = nb::none();
    started_.rethrow();
    return result_;
  }

  [[nodiscard]] std::string text() const { return fmt::format("<tutti.PreparedCall {}>", encode(call_)); }

  [[nodiscard]] bool test() {
    const WithoutGil release;
    if (started_.member && !started_.test()) return false;
    is_awaited_ = false;
    return true;
  }

 private:
  /// Off the root, reduce and gather give the input back, and what is sent needs no room.
  [[nodiscard]] Request request_for(const Arrays& arrays) const {
    const bool gives_back = gives_input_back(call_, member_->rank());
    if (gives_back) copy_elements(arrays.input, arrays.output);
    return request_of(call_, arrays.input, gives_back ? View() : arrays.output);
  }

  std::shared_ptr<Member> member_;
  Call call_;
  nb::object x_, out_;
  Duration timeout_{};
  std::shared_ptr<CachedCall> shape_;
  Started started_;
  bool is_awaited_ = false;  // it was started, and nobody has heard of its end
  nb::object owners_ = nb::none(), result_ = nb::none();
};

}  // namespace

void bind_prepared(nb::module_& m) {
  const auto none = nb::none();
  nb::class_<PreparedArrays>(m, "PreparedCall",
                             "A call that is checked and laid out once and started as often as wanted.")
      .def(nb::init<std::shared_ptr<Member>, Call, nb::object, nb::object, nb::handle>(), nb::arg("group"),
           nb::arg("call"), nb::arg("x").none(), nb::arg("out").none(), nb::arg("timeout").none() = none)
      .def("start", &PreparedArrays::start, nb::arg("x").none() = none, nb::arg("out").none() = none,
           "Begins the call with the arrays it was prepared with, or with others of the same shape, strides and dtype.")
      .def("wait", &PreparedArrays::wait, nb::arg("timeout").none() = none,
           "Waits for the call and gives its result. With a timeout in seconds, raises Timeout if it has not ended by "
           "then; the call goes on.")
      .def("test", &PreparedArrays::test,
           "Whether it has ended, well or not, or was never started. Makes progress, never blocks.")
      .def("__repr__", &PreparedArrays::text);
}

}  // namespace tutti::python
