// records.cpp: what this process's calls have cost, and answers to tools that ask where its program is.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/stats.hpp>

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <chrono>
#include <memory>
#include <string_view>

#include "bindings/bind.hpp"
#include "bindings/gil.hpp"
#include "bindings/registry.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti::python {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// By group, then by verb. Groups of the same members count together.
nb::dict stats_by_group() {
  nb::dict groups;
  for (const CallStats& one : stats(world()->group())) {
    if (!groups.contains(one.group.c_str())) groups[one.group.c_str()] = nb::dict();
    auto verbs = nb::cast<nb::dict>(groups[one.group.c_str()]);
    const nb::str verb(name_of(one.verb).data(), name_of(one.verb).size());
    if (!verbs.contains(verb)) verbs[verb] = nb::dict();
    auto counts = nb::cast<nb::dict>(verbs[verb]);
    const auto add = [&](const char* name, const auto& more) {
      counts[name] = counts.contains(name) ? nb::object(counts[name] + nb::cast(more)) : nb::cast(more);
    };
    add("calls", one.calls);
    add("bytes", one.bytes);
    add("failed", one.failed);
    add("seconds", seconds(one.busy));
    add("waited", seconds(one.waited));
  }
  return groups;
}

/// Of the latest world. Kept by the thread that answers, which may outlive the job.
class Answers {
 public:
  Answers() : recorder_(world()->core().runtime().parts().recorder) {}
  bool wait() {
    if (!recorder_) return false;
    const WithoutGil release;
    return recorder_->answers().wait();
  }
  void answer(std::string_view stack) { recorder_->answers().give(stack); }

 private:
  std::shared_ptr<record::Recorder> recorder_;
};

}  // namespace

void bind_records(nb::module_& m) {
  m.def("stats", stats_by_group);
  m.def(
      "dump_calls", [](const std::string& path) { dump_calls(world()->group(), path); }, nb::arg("path"));
  nb::class_<Answers>(m, "Answers")
      .def(nb::init<>())
      .def("wait", &Answers::wait)
      .def("answer", &Answers::answer, nb::arg("stack"));
}

}  // namespace tutti::python
