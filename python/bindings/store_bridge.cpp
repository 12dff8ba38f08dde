// store_bridge.cpp: a world whose ranks meet in a store that Python has, such as torch.distributed's.
// SPDX-License-Identifier: Apache-2.0
//
// The Python object has set(key, value), get(key, seconds), try_get(key), add(key, amount), compare_set(key,
// expected, desired) and remove(key); keys are str, values bytes, and get gives None when the time is up. It waits in
// Python, so that Ctrl-C ends it. The secret never goes through that store, which others may be able to read.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <tutti/error.hpp>
#include <tutti/init.hpp>

#include "base/environment.hpp"
#include "bindings/bind.hpp"
#include "bindings/conceal.hpp"
#include "bindings/convert.hpp"
#include "bindings/gil.hpp"
#include "bindings/meeting.hpp"
#include "bindings/running.hpp"
#include "bindings/signals.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"
#include "rendezvous/detect.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/place.hpp"
#include "rendezvous/record.hpp"
#include "rendezvous/secret_source.hpp"
#include "rendezvous/store_connector.hpp"
#include "wire/address.hpp"

namespace tutti::python {
namespace {

class PythonStore : public Store {
 public:
  explicit PythonStore(nb::object store) : store_(std::move(store)) {}
  ~PythonStore() override {
    const nb::gil_scoped_acquire gil;
    store_.reset();
  }

  void set(std::string_view key, std::string_view value, TimePoint) override {
    const nb::gil_scoped_acquire gil;
    store_.attr("set")(text(key), bytes(value));
  }
  std::string get(std::string_view key, TimePoint deadline) override {
    const nb::gil_scoped_acquire gil;
    const std::chrono::duration<double> left = deadline - steady_clock().now();
    const nb::object value = store_.attr("get")(text(key), left.count());
    if (!value.is_none()) return from(value);
    throw Timeout(fmt::format("the store has no key {} yet, and the time for it is up", key));
  }
  std::optional<std::string> try_get(std::string_view key, TimePoint) override {
    const nb::gil_scoped_acquire gil;
    const nb::object value = store_.attr("try_get")(text(key));
    return value.is_none() ? std::nullopt : std::optional(from(value));
  }
  std::int64_t add(std::string_view key, std::int64_t amount, TimePoint) override {
    const nb::gil_scoped_acquire gil;
    return nb::cast<std::int64_t>(store_.attr("add")(text(key), amount));
  }
  std::string compare_set(std::string_view key, std::optional<std::string_view> expected, std::string_view desired,
                          TimePoint) override {
    const nb::gil_scoped_acquire gil;
    const nb::object before = expected ? nb::object(bytes(*expected)) : nb::none();
    return from(store_.attr("compare_set")(text(key), before, bytes(desired)));
  }
  bool remove(std::string_view key, TimePoint) override {
    const nb::gil_scoped_acquire gil;
    return nb::cast<bool>(store_.attr("remove")(text(key)));
  }

 private:
  static nb::str text(std::string_view key) { return nb::str(key.data(), key.size()); }
  static nb::bytes bytes(std::string_view value) { return nb::bytes(value.data(), value.size()); }
  static std::string from(const nb::object& value) {
    const auto content = nb::cast<nb::bytes>(value);
    return {content.c_str(), content.size()};
  }

  nb::object store_;
};

/// The store to meet in, and this process's rank.
struct StoreRendezvous {
  std::shared_ptr<Store> store;
  int rank = 0;
  int size = 1;
  std::string host{};  // at which the store is, if that is known
  Duration timeout{};
};

rendezvous::NodeTable check_membership(const StoreRendezvous& where, const rendezvous::HostIdentity& host,
                                       TimePoint deadline) {
  rendezvous::Membership membership(*where.store,
                                    {.rank = where.rank,
                                     .size = where.size,
                                     .node = host.node,
                                     .machine = host.machine,
                                     .host = host.name,
                                     .pid = getpid(),
                                     .token = rendezvous::make_nonce()},
                                    steady_clock(), deadline);
  membership.sign_in();
  if (auto table = membership.verdict(deadline)) return *std::move(table);
  membership.give_up("the store they were given");
}

/// The store's host as a number, which tells the interface to use; empty if it has none.
std::string numeric_host(const std::string& host, TimePoint deadline) {
  if (host.empty()) return {};
  return wire::resolve({.host = host, .port = 1}, deadline).front().host();
}

std::shared_ptr<Connector> meet(const StoreRendezvous& where) {
  const Environment environment = Environment::of_process();
  const TimePoint deadline = deadline_after(steady_clock().now(), where.timeout);
  const auto host = rendezvous::read_host_identity(environment);
  const auto table = check_membership(where, host, deadline);
  const auto secret = rendezvous::given_or_key_file_secret(environment);
  if (secret.serves_one_machine && !table.one_machine) rendezvous::throw_no_secret("the ranks are on several machines");
  rendezvous::Detected detected;
  detected.rank = where.rank;
  detected.size = where.size;
  return std::make_shared<rendezvous::StoreConnector>(rendezvous::StoreConnector::Parts{
      .place = rendezvous::find_place(detected, table, host.name),
      .description = "met in a store of the program's; secret from " + secret.source,
      .meeting_host = table.one_machine ? std::string() : numeric_host(where.host, deadline),
      .store = where.store,
      .secret = secret.secret});
}

StoreRendezvous checked(nb::object store, int rank, int size, nb::handle timeout, const std::string& host) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw InvalidArgument(fmt::format("rank {} of {} cannot be: ranks go from 0 to size - 1", rank, size));
  }
  StoreRendezvous where{
      .store = std::make_shared<PythonStore>(std::move(store)), .rank = rank, .size = size, .host = host};
  where.timeout = timeout.is_none() ? InitOptions().timeout : timeout_from(timeout);
  learn_main_thread();
  return where;
}

std::shared_ptr<Member> join_through(nb::object store, int rank, int size, nb::handle timeout,
                                     const std::string& host) {
  const StoreRendezvous where = checked(std::move(store), rank, size, timeout, host);
  std::shared_ptr<Member> member;
  {
    const WithoutGil release;
    InitOptions options;
    options.timeout = where.timeout;
    member = enroll(init(meet(where), options));
  }
  hear_signals(member->core().runtime());
  if (size > 1) conceal_secret();
  return member;
}

std::shared_ptr<Member> init_through(nb::object store, int rank, int size, nb::handle timeout, const std::string& host,
                                     const std::string& backend) {
  const StoreRendezvous where = checked(std::move(store), rank, size, timeout, host);
  std::optional<Joined> joined;
  {
    const WithoutGil release;
    const std::shared_ptr<Connector> connector = meet(where);
    InitOptions options{.backend = backend};
    options.timeout = where.timeout;
    joined.emplace(join(connector, options));
  }
  return adopt(*std::move(joined));
}

/// The number of ranks that the environment tells of; 1: of none but this process.
int launched_size() {
  try {
    return rendezvous::detect(Environment::of_process()).size;
  } catch (const InvalidArgument&) {  // half of what has to be said
    return 1;
  }
}

void leave(const std::shared_ptr<Member>& world) {
  const WithoutGil release;
  world->core().runtime().leave();
}

}  // namespace

void bind_store_bridge(nb::module_& m) {
  m.def("join_through", join_through, nb::arg("store"), nb::arg("rank"), nb::arg("size"), nb::arg("timeout"),
        nb::arg("host") = "",
        "A world of its own, beside that of init(): the ranks that come to the same store. leave() ends it.");
  m.def("init_through", init_through, nb::arg("store"), nb::arg("rank"), nb::arg("size"), nb::arg("timeout").none(),
        nb::arg("host") = "", nb::arg("backend") = "auto",
        "The world of init(), of the ranks that come to the same store.");
  m.def("launched_size", launched_size, "The number of ranks that the environment tells of.");
  m.def("leave", leave, nb::arg("world"), "Says goodbye to the others of a world that join_through() made.");
}

}  // namespace tutti::python
