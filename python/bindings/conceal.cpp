// conceal.cpp: removes the secret from Python's copy of the environment.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/conceal.hpp"

#include <nanobind/nanobind.h>

#include <string>

#include "base/environment.hpp"
#include "base/guarded.hpp"

namespace nb = nanobind;

namespace tutti::python {

void conceal_secret() {
  Environment::conceal_secret_of_process();
  const std::string name(secret_variable);
  const nb::object environ = nb::module_::import_("os").attr("environ");
  if (!nb::cast<bool>(environ.attr("__contains__")(name.c_str()))) return;
  // The mapping behind os.environ holds the text itself, as bytes; what one reads from os.environ are copies.
  if (nb::hasattr(environ, "_data")) {
    const nb::object text = environ.attr("_data").attr("get")(nb::bytes(name.data(), name.size()));
    if (nb::isinstance<nb::bytes>(text))
      wipe(PyBytes_AS_STRING(text.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(text.ptr())));
  }
  environ.attr("pop")(name.c_str());
}

}  // namespace tutti::python
