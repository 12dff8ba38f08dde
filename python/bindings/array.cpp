// array.cpp: Python objects with elements, as a View.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/array.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>

#include <tutti/error.hpp>

#include "bindings/exchange.hpp"
#include "bindings/numpy.hpp"
#include "bindings/running.hpp"

namespace tutti::python {
namespace {

using Lengths = std::vector<std::int64_t>;

// DLPack's codes of small floats, which nanobind has no names for.
constexpr std::uint8_t dlpack_float8_e4m3fn = 10, dlpack_float8_e5m2 = 12;

struct DlpackCode {
  DType dtype;
  std::uint8_t code;
};

/// Signed, unsigned, float, bfloat, complex, bool: DLPack's own numbers.
constexpr std::array<DlpackCode, dtype_count> dlpack_codes{{
    {DType::boolean, 6},
    {DType::int8, 0},
    {DType::int16, 0},
    {DType::int32, 0},
    {DType::int64, 0},
    {DType::uint8, 1},
    {DType::uint16, 1},
    {DType::uint32, 1},
    {DType::uint64, 1},
    {DType::float16, 2},
    {DType::bfloat16, 4},
    {DType::float32, 2},
    {DType::float64, 2},
    {DType::complex64, 5},
    {DType::complex128, 5},
    {DType::float8_e4m3, dlpack_float8_e4m3fn},
    {DType::float8_e5m2, dlpack_float8_e5m2},
}};

nb::dlpack::dtype dlpack_of(DType dtype) {
  return {dlpack_codes[std::size_t(dtype)].code, std::uint8_t(8 * size_of(dtype)), 1};
}

DType dtype_from(nb::dlpack::dtype dlpack) {
  for (const auto& [dtype, code] : dlpack_codes) {
    if (code == dlpack.code && 8 * size_of(dtype) == dlpack.bits && dlpack.lanes == 1) return dtype;
  }
  throw InvalidArgument(
      fmt::format("elements of DLPack type {} with {} bits are not known; convert the array to numbers or bool",
                  dlpack.code, dlpack.bits));
}

std::string kind_of(nb::handle object) { return nb::cast<std::string>(nb::str(object.type())); }

void check_seen(std::int32_t device_type, std::size_t axes) {
  if (device_type != nb::device::cpu::value) {
    throw Unsupported("the array is not in the CPU's memory; move it there first (for example x.cpu())");
  }
  if (axes > std::size_t(View::max_axes)) throw InvalidArgument("the array has more than 16 axes; reshape it");
}

View view_from(const nb::dlpack::dltensor& array) {
  check_seen(array.device.device_type, std::size_t(array.ndim));
  const std::span<const std::int64_t> shape(array.shape, std::size_t(array.ndim));
  const bool is_empty = std::ranges::find(shape, 0) != shape.end();
  if (array.data == nullptr && !is_empty) throw InvalidArgument("the array has a shape, but no memory behind it");
  const std::span<const std::int64_t> strides(array.strides, array.strides != nullptr ? shape.size() : 0);
  return View(static_cast<std::byte*>(array.data) + array.byte_offset, dtype_from(array.dtype), shape, strides);
}

template <class... Options>
View view_from(const nb::ndarray<Options...>& array, bool read_only) {
  check_seen(array.device_type(), array.ndim());
  std::array<std::int64_t, View::max_axes> shape{}, strides{};
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    shape[i] = std::int64_t(array.shape(i));
    strides[i] = array.stride(i);
  }
  const std::span<const std::int64_t> lengths(shape.data(), array.ndim()), steps(strides.data(), array.ndim());
  const DType dtype = dtype_from(array.dtype());
  if (read_only) return View::read_only(array.data(), dtype, lengths, steps);
  return View(const_cast<void*>(static_cast<const void*>(array.data())), dtype, lengths, steps);
}

/// DLPack or the buffer protocol, which nanobind speaks both of.
Held hold_exported(nb::handle object, Use use) {
  nb::ndarray<> writable;
  if (nb::try_cast(object, writable)) return {view_from(writable, false), nb::borrow(object)};
  nb::ndarray<nb::ro> readable;
  if (use == Use::read && nb::try_cast(object, readable)) return {view_from(readable, true), nb::borrow(object)};
  PyErr_Clear();
  if (use == Use::write && nb::try_cast(object, readable)) {
    throw InvalidArgument(
        fmt::format("the array for the result ({}) is read-only; pass a writable one", kind_of(object)));
  }
  throw InvalidArgument(
      fmt::format("{} is not an array: pass a NumPy array, a tensor of a framework, or anything with DLPack or "
                  "the buffer protocol",
                  kind_of(object)));
}

Array array_over(std::uintptr_t pointer, std::string_view dtype, const Lengths& shape,
                 const std::optional<Lengths>& strides, bool read_only, nb::object owner, std::optional<int> gpu) {
  const DType type = dtype_from_name(dtype);
  void* const data = reinterpret_cast<void*>(pointer);  // NOLINT: an address is what frameworks give
  const Lengths steps = strides.value_or(Lengths());
  const Device device = gpu ? Device{.kind = Device::Kind::cuda, .index = *gpu} : Device{};
  return {
      .view = read_only ? View::read_only(data, type, shape, steps, device) : View(data, type, shape, steps, device),
      .owner = std::move(owner)};
}

void require_cpu(const View& view) {
  if (view.device().kind == Device::Kind::cpu) return;
  throw Unsupported("the array is on a GPU, and this works on the CPU's memory; copy it there first");
}

/// nanobind's own class for DLPack and the buffer protocol.
nb::object exported(nb::handle self) {
  const auto& array = nb::cast<const Array&>(self);
  require_cpu(array.view);
  std::vector<std::size_t> shape(array.view.shape().begin(), array.view.shape().end());
  const Lengths strides(array.view.strides().begin(), array.view.strides().end());
  return nb::cast(nb::ndarray<nb::array_api>(array.view.data(), shape.size(), shape.data(), self, strides.data(),
                                             dlpack_of(array.view.dtype())));
}

/// Python gets a MemoryError; other ranks are told how much was asked for.
struct NoMemory : std::bad_alloc {
  explicit NoMemory(std::size_t bytes) : text(fmt::format("there is no memory for an array of {} bytes", bytes)) {}
  [[nodiscard]] const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

nb::tuple as_tuple(std::span<const std::int64_t> numbers) {
  return nb::tuple(nb::cast(Lengths(numbers.begin(), numbers.end())));
}

}  // namespace

Held hold(nb::handle object, Use use, Memory memory) {
  if (object.is_none()) return {.view = {}, .owner = nb::none()};
  if (is_numpy(object)) return {view_of_numpy(object), nb::borrow(object)};
  if (nb::isinstance<Array>(object)) {
    const View& view = nb::cast<const Array&>(object).view;
    if (memory == Memory::cpu) require_cpu(view);
    return {view, nb::borrow(object)};
  }
  if (View view; view_exchanged(object, view)) return {view, nb::borrow(object)};
  if (is_numpy_kind(object)) return {view_of_numpy(object), nb::borrow(object)};
  return hold_exported(object, use);
}

bool view_exchanged(nb::handle object, View& view) {
  nb::dlpack::dltensor seen;
  if (!exchange(object, seen)) return false;
  view = view_from(seen);
  return true;
}

Array new_array(DType dtype, std::span<const std::int64_t> shape) {
  std::size_t bytes = size_of(dtype);
  for (const std::int64_t length : shape) bytes *= std::size_t(length);
  constexpr std::size_t line = 64;
  auto* const raw =
      static_cast<std::byte*>(std::aligned_alloc(line, (std::max<std::size_t>(bytes, 1) + line - 1) / line * line));
  if (raw == nullptr) throw NoMemory(bytes);
  return {.view = View(raw, dtype, shape),
          .memory = std::shared_ptr<std::byte>(raw, [](std::byte* p) { std::free(p); })};
}

nb::object array_over(nb::handle type, Array array) {
  const View& view = array.view;
  return new_exchanged(type,
                       {.data = view.data(),
                        .device = {nb::device::cpu::value, 0},
                        .ndim = view.axes(),
                        .dtype = dlpack_of(view.dtype()),
                        .shape = const_cast<std::int64_t*>(view.shape().data()),
                        .strides = const_cast<std::int64_t*>(view.strides().data()),
                        .byte_offset = 0},
                       std::move(array.memory));
}

void bind_array(nb::module_& m) {
  nb::class_<Array>(m, "Array", "Memory with a shape: what frameworks hand to the core and get from it without a copy.")
      .def(
          "__init__",
          [](Array* self, std::uintptr_t pointer, std::string_view dtype, const Lengths& shape,
             const std::optional<Lengths>& strides, bool read_only, nb::object owner, std::optional<int> gpu) {
            new (self) Array(array_over(pointer, dtype, shape, strides, read_only, std::move(owner), gpu));
          },
          nb::arg("pointer"), nb::arg("dtype"), nb::arg("shape"), nb::arg("strides") = nb::none(),
          nb::arg("read_only") = false, nb::arg("owner") = nb::none(), nb::arg("gpu") = nb::none())
      .def_prop_ro("pointer", [](const Array& a) { return reinterpret_cast<std::uintptr_t>(a.view.data()); })
      .def_prop_ro("dtype", [](const Array& a) { return name_of(a.view.dtype()); })
      .def_prop_ro("shape", [](const Array& a) { return as_tuple(a.view.shape()); })
      .def_prop_ro("strides", [](const Array& a) { return as_tuple(a.view.strides()); })
      .def_prop_ro("nbytes", [](const Array& a) { return a.view.bytes(); })
      .def_ro("kind", &Array::kind)
      .def_ro("source", &Array::source)
      .def_prop_ro("read_only", [](const Array& a) { return a.view.is_read_only(); })
      .def_prop_ro("gpu",
                   [](const Array& a) {
                     const Device device = a.view.device();
                     return device.kind == Device::Kind::cpu ? std::nullopt : std::optional(device.index);
                   })
      .def("numpy",
           [](nb::handle self) {
             const View& view = nb::cast<const Array&>(self).view;
             require_cpu(view);
             return numpy_over(view, self);
           })
      .def("__dlpack__",
           [](nb::handle self, const nb::kwargs& wishes) { return exported(self).attr("__dlpack__")(**wishes); })
      .def("__dlpack_device__",
           [](const Array& a) { return nb::make_tuple(int(a.view.device().kind), a.view.device().index); })
      .def("__len__", [](const Array& a) { return a.view.axes() == 0 ? 0 : a.view.shape()[0]; })
      .def("__repr__", [](const Array& a) {
        return fmt::format("<tutti.Array {} of shape {}>", name_of(a.view.dtype()),
                           nb::repr(as_tuple(a.view.shape())).c_str());
      });
  m.def(
      "copy_elements",
      [](nb::handle from, nb::handle to) {
        const Held source = hold(from, Use::read), target = hold(to, Use::write);
        const View &a = source.view, &b = target.view;
        if (a.dtype() != b.dtype() || !std::ranges::equal(a.shape(), b.shape())) {
          throw Mismatch(fmt::format("{} of shape [{}] came, but the array for it is {} of shape [{}]",
                                     name_of(a.dtype()), fmt::join(a.shape(), ", "), name_of(b.dtype()),
                                     fmt::join(b.shape(), ", ")));
        }
        copy_elements(a, b);
      },
      nb::arg("source"), nb::arg("target"), "Copies an array into another one of the same shape and dtype.");
  m.def(
      "new_array",
      [](std::string_view dtype, const Lengths& shape) { return new_array(dtype_from_name(dtype), shape); },
      nb::arg("dtype"), nb::arg("shape"), "An Array of our own, elements not initialised.");
}

}  // namespace tutti::python
