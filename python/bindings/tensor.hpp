// tensor.hpp: calls on torch's tensors in eager code, without a Python frame between.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bindings/running.hpp"

namespace tutti::python {

/// Where a plain tensor's elements lie. False: not a tensor, or one that tutti/torch/verbs.py looks at more closely: it is traced,
/// differentiated, conjugated, or not memory of the CPU at all.
bool view_of_tensor(nb::handle object, View& view);

/// The same for many; `views` get one each. False also where one of them is no such tensor.
bool views_of_tensors(std::span<const nb::object> tensors, std::vector<View>& views);
/// Whether this is torch.Tensor, once torch has been seen.
bool is_tensor_type(nb::handle type);

/// A blocking call on one tensor, recorded for autograd where its input requires gradients. Null: not served here, and nothing has
/// happened.
nb::object apply_to_tensor(const std::shared_ptr<Member>& member, const Call& call, nb::handle x, nb::handle out,
                           nb::handle timeout);

}  // namespace tutti::python
