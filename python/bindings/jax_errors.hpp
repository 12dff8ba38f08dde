// jax_errors.hpp: errors on their way through XLA, which carries a code and a text, and back to Python.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "bindings/bind.hpp"
#include "xla/ffi/api/ffi.h"

namespace tutti::python {

/// The error as XLA wants it: the class's name in front of the text. It is kept for a while, to be found by its text.
xla::ffi::Error error_for_xla(const std::exception_ptr& thrown);

/// Throws the error whose text is part of what XLA said; returns if there is none.
void rethrow_if_ours(std::string_view said);

/// A call of a program succeeded: an earlier failure need not be reported any more.
void note_success();
/// What the latest call of a program said if it failed and was not thrown since, and nothing the next time.
std::string take_unseen_failure();

}  // namespace tutti::python
