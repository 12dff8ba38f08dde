// parallel_kernels.cpp: optimiser steps and quantisation over arrays of any framework.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/stl/string_view.h>

#include <array>
#include <string_view>

#include <tutti/error.hpp>

#include "bindings/array.hpp"
#include "bindings/bind.hpp"
#include "bindings/gil.hpp"
#include "kernel/optimise.hpp"
#include "kernel/quantise.hpp"

namespace tutti::python {
namespace {

// Contiguous, of one dtype and length: what the kernels take.
template <std::size_t n>
void require_same_shape(std::string_view what, const std::array<const Held*, n>& arrays) {
  for (const Held* array : arrays) {
    const View& view = array->view;
    if (!view.present() || !view.is_contiguous()) {
      throw InvalidArgument(fmt::format("{}: the arrays must be contiguous", what));
    }
    if (view.dtype() != arrays[0]->view.dtype() || view.count() != arrays[0]->view.count()) {
      throw InvalidArgument(fmt::format("{}: {} × {} and {} × {} do not go together", what, name_of(view.dtype()),
                                        view.count(), name_of(arrays[0]->view.dtype()), arrays[0]->view.count()));
    }
  }
}

void bind_adamw(nb::module_& m) {
  m.def(
      "adamw_step",
      [](nb::handle parameter, nb::handle gradient, nb::handle mean, nb::handle square, std::int64_t step, double lr,
         double beta1, double beta2, double eps, double weight_decay, double gradient_scale) {
        const Held p = hold(parameter, Use::write), g = hold(gradient, Use::read);
        const Held a = hold(mean, Use::write), s = hold(square, Use::write);
        require_same_shape<4>("adamw_step", {&p, &g, &a, &s});
        const kernel::AdamW rule{.learning_rate = lr,
                                 .beta1 = beta1,
                                 .beta2 = beta2,
                                 .epsilon = eps,
                                 .weight_decay = weight_decay,
                                 .gradient_scale = gradient_scale,
                                 .step = step};
        const WithoutGil without_gil;
        kernel::adamw_step(p.view.dtype(), {p.view.data(), g.view.data(), a.view.data(), s.view.data()}, rule,
                           p.view.count());
      },
      nb::arg("parameter"), nb::arg("gradient"), nb::arg("mean"), nb::arg("square"), nb::kw_only(), nb::arg("step"),
      nb::arg("lr") = 1e-3, nb::arg("beta1") = 0.9, nb::arg("beta2") = 0.999, nb::arg("eps") = 1e-8,
      nb::arg("weight_decay") = 1e-2, nb::arg("gradient_scale") = 1.0, "One step of AdamW, in place.");
}

void bind_sgd(nb::module_& m) {
  m.def(
      "sgd_step",
      [](nb::handle parameter, nb::handle gradient, nb::handle velocity, double lr, double momentum, double dampening,
         double weight_decay, bool nesterov, bool is_first, double gradient_scale) {
        const Held p = hold(parameter, Use::write), g = hold(gradient, Use::read), v = hold(velocity, Use::write);
        require_same_shape<2>("sgd_step", {&p, &g});
        if (v.view.present()) require_same_shape<2>("sgd_step", {&p, &v});
        const kernel::Sgd rule{.learning_rate = lr,
                               .momentum = momentum,
                               .dampening = dampening,
                               .weight_decay = weight_decay,
                               .gradient_scale = gradient_scale,
                               .nesterov = nesterov,
                               .is_first = is_first};
        const WithoutGil without_gil;
        kernel::sgd_step(p.view.dtype(), {p.view.data(), g.view.data(), v.view.data()}, rule, p.view.count());
      },
      nb::arg("parameter"), nb::arg("gradient"), nb::arg("velocity").none() = nb::none(), nb::kw_only(), nb::arg("lr"),
      nb::arg("momentum") = 0.0, nb::arg("dampening") = 0.0, nb::arg("weight_decay") = 0.0, nb::arg("nesterov") = false,
      nb::arg("is_first") = false, nb::arg("gradient_scale") = 1.0, "One step of SGD, in place.");
  m.def(
      "sum_of_squares",
      [](nb::handle array) {
        const Held x = hold(array, Use::read);
        require_same_shape<1>("sum_of_squares", {&x});
        const WithoutGil without_gil;
        return kernel::sum_of_squares(x.view.dtype(), x.view.data(), x.view.count());
      },
      nb::arg("array"), "Σ x² in float64, the same bits on every machine.");
}

void check_records(std::string_view what, const Held& values, const Held& records) {
  if (values.view.dtype() != DType::float32 || !values.view.is_contiguous()) {
    throw InvalidArgument(fmt::format("{}: the values must be contiguous float32", what));
  }
  const std::int64_t bytes = kernel::quantised_bytes(values.view.count());
  if (records.view.bytes() != bytes || !records.view.is_contiguous()) {
    throw InvalidArgument(fmt::format("{}: {} values take {} bytes of records, not {}", what, values.view.count(),
                                      bytes, records.view.bytes()));
  }
}

void bind_quantise(nb::module_& m) {
  m.attr("quantised_block") = kernel::quantised_block;
  m.def("quantised_bytes", &kernel::quantised_bytes, nb::arg("count"));
  m.def(
      "quantise",
      [](nb::handle values, nb::handle residual, nb::handle records) {
        const Held from = hold(values, Use::read), left = hold(residual, Use::write), to = hold(records, Use::write);
        check_records("quantise", from, to);
        if (left.view.present()) require_same_shape<2>("quantise", {&from, &left});
        const WithoutGil without_gil;
        kernel::quantise(static_cast<const float*>(from.view.data()), static_cast<float*>(left.view.data()),
                         to.view.data(), from.view.count());
      },
      nb::arg("values"), nb::arg("residual").none(), nb::arg("records"),
      "Records of values + residual; the residual becomes what they do not say.");
  m.def(
      "dequantise",
      [](nb::handle records, nb::handle values, bool add) {
        const Held from = hold(records, Use::read), to = hold(values, Use::write);
        check_records("dequantise", to, from);
        const WithoutGil without_gil;
        auto* out = static_cast<float*>(to.view.data());
        add ? kernel::dequantise_add(from.view.data(), out, to.view.count())
            : kernel::dequantise(from.view.data(), out, to.view.count());
      },
      nb::arg("records"), nb::arg("values"), nb::kw_only(), nb::arg("add") = false);
}

}  // namespace

void bind_kernels(nb::module_& m) {
  bind_adamw(m);
  bind_sgd(m);
  bind_quantise(m);
}

}  // namespace tutti::python
