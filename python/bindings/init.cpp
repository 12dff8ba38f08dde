// init.cpp: joining a job from Python, and leaving it.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/init.hpp>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/conceal.hpp"
#include "bindings/convert.hpp"
#include "bindings/gil.hpp"
#include "bindings/interruptibly.hpp"
#include "bindings/joining.hpp"
#include "bindings/running.hpp"
#include "group/core.hpp"
#include "group/meet.hpp"
#include "group/runtime.hpp"

namespace tutti::python {
namespace {

Facts& facts() {  // under the GIL
  static auto* instance = new Facts;
  return *instance;
}

std::shared_ptr<Member> init_world(const std::string& backend, const std::optional<std::string>& init_method,
                                   std::optional<int> rank, std::optional<int> size, nb::handle timeout,
                                   std::optional<int> communicator) {
  if (has_world()) {
    world()->core().runtime().check_alive();
    return world();
  }
  InitOptions options{.backend = backend,
                      .init_method = init_method.value_or(""),
                      .rank = rank.value_or(-1),
                      .size = size.value_or(-1),
                      .mpi_communicator = communicator};
  if (!timeout.is_none()) options.timeout = timeout_from(timeout);
  return adopt(
      interruptibly([options] { return join(connect_as_asked(options), options); }));  // the others may be late
}

// An interrupt gives up what this rank still waits for, and is raised once the others have its goodbye; a second one does not wait for that.
void leave_interruptibly(const std::shared_ptr<Runtime>& runtime) {
  std::packaged_task<void()> task([runtime] { runtime->leave(); });
  std::future<void> left = task.get_future();
  std::thread(std::move(task)).detach();
  std::optional<nb::python_error> raised;
  while (true) {
    {
      const WithoutGil release;
      if (left.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    if (raised) throw nb::python_error();
    raised.emplace();
    const WithoutGil release;
    runtime->interrupt_leaving();
  }
  if (raised) throw nb::python_error(std::move(*raised));
}

void finalize_world() {
  if (!has_world()) return;
  const auto member = world();
  set_world(nullptr);
  leave_interruptibly(member->core().runtime_handle());
  forget_ended(true);
  if (const auto error = member->core().runtime().take_leave_error()) std::rethrow_exception(error);
}

nb::dict place_of_world() {
  const Place& place = facts().place;
  nb::dict result;
  result["rank"] = place.rank;
  result["size"] = place.size;
  result["local_rank"] = place.local_rank;
  result["local_size"] = place.local_size;
  result["node_rank"] = place.node_rank;
  result["node_count"] = place.node_count;
  result["root_rank"] = place.root_rank;
  result["host"] = place.host;
  result["met"] = facts().description;
  return result;
}

}  // namespace

Joined join(const std::shared_ptr<Connector>& connector, const InitOptions& options) {
  Facts found{.place = connector->place(), .description = connector->describe()};
  Group world = init(connector, options);
  return {.world = std::move(world), .facts = std::move(found)};
}

std::shared_ptr<Member> adopt(Joined joined) {
  facts() = std::move(joined.facts);
  if (facts().place.size > 1) conceal_secret();
  auto member = enroll(std::move(joined.world));
  set_world(member);
  return member;
}

Duration timeout_from(nb::handle value) {
  if (value.is_none()) return {};
  double seconds = 0;
  if (!nb::try_cast(value, seconds)) {
    if (!nb::hasattr(value, "total_seconds")) {
      throw InvalidArgument(fmt::format("timeout={} is neither a number of seconds nor a timedelta",
                                        nb::cast<std::string>(nb::repr(value))));
    }
    seconds = nb::cast<double>(value.attr("total_seconds")());
  }
  if (!(seconds > 0)) throw InvalidArgument(fmt::format("timeout={} is not more than 0 seconds", seconds));
  constexpr double longest = 9e9;  // seconds; a Duration holds no more
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, longest)));
}

void bind_init(nb::module_& m) {
  m.def("init", init_world, nb::arg("backend") = "auto", nb::arg("init_method") = nb::none(),
        nb::arg("rank") = nb::none(), nb::arg("size") = nb::none(), nb::arg("timeout") = nb::none(),
        nb::arg("communicator") = nb::none());
  m.def("finalize", finalize_world);
  m.def("fail_at_exit", &fail_at_exit);
  m.def("world", world);
  m.def("has_world", has_world);
  m.def("place", place_of_world);
}

}  // namespace tutti::python
