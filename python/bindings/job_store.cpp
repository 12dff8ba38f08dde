// job_store.cpp: the job's key-value store in Python: keys are str, values bytes.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <tutti/init.hpp>

#include "bindings/bind.hpp"
#include "bindings/convert.hpp"
#include "bindings/gil.hpp"
#include "bindings/registry.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti::python {
namespace {

std::string_view view_of(const nb::bytes& value) { return {value.c_str(), value.size()}; }
nb::bytes to_bytes(const std::string& value) { return nb::bytes(value.data(), value.size()); }

class JobStore {
  template <class Request>
  auto run(nb::handle timeout, Request request) {
    const Duration given = timeout_from(timeout);
    const TimePoint deadline =
        deadline_after(steady_clock().now(), given > Duration::zero() ? given : default_timeout_);
    const WithoutGil release;
    return request(deadline);
  }

 public:
  explicit JobStore(const std::shared_ptr<Member>& member)
      : store_(job_store(member->group())), default_timeout_(member->core().runtime().parts().default_timeout) {}

  void set(std::string_view key, const nb::bytes& value, nb::handle timeout) {
    run(timeout, [&](TimePoint deadline) { store_->set(key, view_of(value), deadline); });
  }
  nb::bytes get(std::string_view key, nb::handle timeout) {
    return to_bytes(run(timeout, [&](TimePoint deadline) { return store_->get(key, deadline); }));
  }
  nb::object try_get(std::string_view key, nb::handle timeout) {
    const auto value = run(timeout, [&](TimePoint deadline) { return store_->try_get(key, deadline); });
    return value ? nb::object(to_bytes(*value)) : nb::none();
  }
  void wait(std::string_view key, nb::handle timeout) {
    run(timeout, [&](TimePoint deadline) { store_->wait(key, deadline); });
  }
  std::int64_t add(std::string_view key, std::int64_t amount, nb::handle timeout) {
    return run(timeout, [&](TimePoint deadline) { return store_->add(key, amount, deadline); });
  }
  nb::bytes compare_set(std::string_view key, const std::optional<nb::bytes>& expected, const nb::bytes& desired,
                        nb::handle timeout) {
    const auto before = expected ? std::optional(view_of(*expected)) : std::nullopt;
    return to_bytes(
        run(timeout, [&](TimePoint deadline) { return store_->compare_set(key, before, view_of(desired), deadline); }));
  }
  bool remove(std::string_view key, nb::handle timeout) {
    return run(timeout, [&](TimePoint deadline) { return store_->remove(key, deadline); });
  }

 private:
  std::shared_ptr<Store> store_;
  Duration default_timeout_;
};

}  // namespace

void bind_job_store(nb::module_& m) {
  const auto timeout = nb::arg("timeout") = nb::none();
  nb::class_<JobStore>(m, "JobStore", "The key-value store of the job that this process has joined.")
      .def("__init__", [](JobStore* self) { new (self) JobStore(world()); })
      .def("set", &JobStore::set, nb::arg("key"), nb::arg("value"), timeout)
      .def("get", &JobStore::get, nb::arg("key"), timeout)
      .def("try_get", &JobStore::try_get, nb::arg("key"), timeout)
      .def("wait", &JobStore::wait, nb::arg("key"), timeout)
      .def("add", &JobStore::add, nb::arg("key"), nb::arg("amount"), timeout)
      .def("compare_set", &JobStore::compare_set, nb::arg("key"), nb::arg("expected").none(), nb::arg("desired"),
           timeout)
      .def("remove", &JobStore::remove, nb::arg("key"), timeout);
}

}  // namespace tutti::python
