// store_server.cpp: a rendezvous store, served by a process that starts its ranks itself.
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "bindings/bind.hpp"
#include "store/tcp_server.hpp"
#include "wire/secret.hpp"

namespace tutti::python {

void bind_store_server(nb::module_& m) {
  nb::class_<TcpStoreServer>(m, "StoreServer",
                             "Serves a store on a free port of loopback, on a thread of its own, while it lives.")
      .def(
          "__init__",
          [](TcpStoreServer* self, std::string_view secret) {
            new (self)
                TcpStoreServer(TcpStoreServer::Options{.secret = wire::Secret::from_hex(secret),
                                                       .encryption = wire::encryption_from(Environment::of_process())});
          },
          nb::arg("secret"))
      .def_prop_ro("address", [](const TcpStoreServer& server) { return server.address().text(); });
}

}  // namespace tutti::python
