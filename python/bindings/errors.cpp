// errors.cpp: the library's errors as the exceptions of tutti/_errors.py.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/errors.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <tutti/error.hpp>

#include "bindings/bind.hpp"
#include "bindings/site.hpp"

namespace tutti::python {
namespace {

nb::object exception_class(const char* name) { return nb::module_::import_("tutti._errors").attr(name); }

/// The error's text, and where the program made the call.
std::string located(const char* text) {
  const std::string site = call_site();
  if (site.empty() || std::string_view(text).find(site) != std::string_view::npos) return text;
  return fmt::format("{} (called at {})", text, site);
}

void raise(const char* name, const char* text) { PyErr_SetString(exception_class(name).ptr(), located(text).c_str()); }

void raise_lost(const PeerLost& lost) {
  const nb::object type = exception_class("PeerLost");
  const nb::object exception = type(located(lost.what()), lost.rank(), lost.host(), lost.reason());
  PyErr_SetObject(type.ptr(), exception.ptr());
}

}  // namespace

void set_python_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const PeerLost& e) {
    raise_lost(e);
  } catch (const InvalidArgument& e) {
    raise("InvalidArgument", e.what());
  } catch (const Mismatch& e) {
    raise("Mismatch", e.what());
  } catch (const Timeout& e) {
    raise("Timeout", e.what());
  } catch (const Aborted& e) {
    raise("Aborted", e.what());
  } catch (const RendezvousError& e) {
    raise("RendezvousError", e.what());
  } catch (const AuthenticationError& e) {
    raise("AuthenticationError", e.what());
  } catch (const Unsupported& e) {
    raise("Unsupported", e.what());
  } catch (const Error& e) {
    raise("Error", e.what());
  }
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) { set_python_error(thrown); });
}

}  // namespace tutti::python
