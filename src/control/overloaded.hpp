// overloaded.hpp: several functions as one, for std::visit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tutti::control {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;  // clang 14 does not deduce it by itself

}  // namespace tutti::control
