// numpy.cpp: NumPy arrays, without a Python frame between.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/numpy.hpp"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <numpy/arrayobject.h>

#include <array>
#include <cstring>
#include <string_view>

#include <tutti/error.hpp>

namespace tutti::python {
namespace {

/// The C interface, fetched once. An array exists, so NumPy has been imported.
void need_numpy() {
  static const bool ready = [] {
    if (_import_array() < 0) throw nb::python_error();
    return true;
  }();
  (void)ready;
}

std::optional<DType> small_dtype(const PyArray_Descr* descr) {
  if (!PyTypeNum_ISUSERDEF(descr->type_num)) return std::nullopt;
  std::string_view name = descr->typeobj->tp_name;  // ml_dtypes', which NumPy knows only as types of some user
  name.remove_prefix(name.rfind('.') + 1);
  if (name == "bfloat16") return DType::bfloat16;
  if (name == "float8_e4m3fn") return DType::float8_e4m3;
  if (name == "float8_e5m2") return DType::float8_e5m2;
  return std::nullopt;
}

std::optional<DType> dtype_from(PyArray_Descr* descr) {
  const auto by_width = [&](DType first) -> std::optional<DType> {
    switch (PyDataType_ELSIZE(descr)) {
      case 1: return first;
      case 2: return DType(int(first) + 1);
      case 4: return DType(int(first) + 2);
      case 8: return DType(int(first) + 3);
      default: return std::nullopt;
    }
  };
  switch (descr->kind) {
    case 'b': return DType::boolean;
    case 'i': return by_width(DType::int8);
    case 'u': return by_width(DType::uint8);
    case 'f':
      if (const auto small = small_dtype(descr)) return small;
      switch (PyDataType_ELSIZE(descr)) {
        case 2: return DType::float16;
        case 4: return DType::float32;
        case 8: return DType::float64;
        default: return std::nullopt;
      }
    case 'c':
      if (PyDataType_ELSIZE(descr) == 8) return DType::complex64;
      if (PyDataType_ELSIZE(descr) == 16) return DType::complex128;
      return std::nullopt;
    default: return small_dtype(descr);
  }
}

[[noreturn]] void refuse_dtype(PyArray_Descr* descr) {
  const auto name = nb::cast<std::string>(nb::str(nb::handle(reinterpret_cast<PyObject*>(descr))));
  throw InvalidArgument(
      fmt::format("NumPy arrays of dtype {} cannot be sent: elements have to be numbers or bool of up to 8 bytes "
                  "(complex: 16); convert with "
                  ".astype, or send Python objects with broadcast_object and its like",
                  name));
}

PyArray_Descr* new_descr(DType dtype) {
  PyArray_Descr* descr = nullptr;
  nb::object spec;
  switch (dtype) {
    case DType::bfloat16: spec = nb::module_::import_("ml_dtypes").attr("bfloat16"); break;
    case DType::float8_e4m3: spec = nb::module_::import_("ml_dtypes").attr("float8_e4m3fn"); break;
    case DType::float8_e5m2: spec = nb::module_::import_("ml_dtypes").attr("float8_e5m2"); break;
    default: spec = nb::str(name_of(dtype).data(), name_of(dtype).size());
  }
  if (PyArray_DescrConverter(spec.ptr(), &descr) == NPY_FAIL) throw nb::python_error();
  return descr;
}

}  // namespace

bool is_numpy(nb::handle object) {
  static PyTypeObject* array_type = nullptr;
  PyTypeObject* const type = Py_TYPE(object.ptr());
  if (type == array_type) return true;
  if (array_type != nullptr || std::strcmp(type->tp_name, "numpy.ndarray") != 0) return false;
  need_numpy();
  array_type = &PyArray_Type;
  return type == array_type;
}

bool is_numpy_kind(nb::handle object) {
  if (is_numpy(object)) return true;
  // Without NumPy imported there are no arrays of it, nor of its subclasses.
  if (!nb::hasattr(object.type(), "__array_finalize__")) return false;
  need_numpy();
  return PyArray_Check(object.ptr());
}

DType dtype_of_numpy(nb::handle object) {
  need_numpy();
  if (!PyArray_DescrCheck(object.ptr())) throw InvalidArgument("the array's dtype is not one of NumPy's");
  auto* const descr = reinterpret_cast<PyArray_Descr*>(object.ptr());
  const auto dtype = dtype_from(descr);
  if (!dtype) refuse_dtype(descr);
  return *dtype;
}

View view_of_numpy(nb::handle object) {
  auto* const array = reinterpret_cast<PyArrayObject*>(object.ptr());
  PyArray_Descr* const descr = PyArray_DESCR(array);
  const auto dtype = dtype_from(descr);
  if (!dtype) refuse_dtype(descr);
  if (PyArray_ISBYTESWAPPED(array)) {
    throw InvalidArgument(
        "the NumPy array has another byte order than this machine; convert it with "
        "x.astype(x.dtype.newbyteorder('='))");
  }
  const int axes = PyArray_NDIM(array);
  if (axes > View::max_axes) {
    throw InvalidArgument(fmt::format("the NumPy array has {} axes; {} are allowed: reshape it", axes, View::max_axes));
  }
  const npy_intp width = PyDataType_ELSIZE(descr);
  std::array<std::int64_t, View::max_axes> shape, strides;
  for (int i = 0; i < axes; ++i) {
    const auto axis = static_cast<std::size_t>(i);
    shape[axis] = PyArray_DIM(array, i);
    const npy_intp stride = PyArray_STRIDE(array, i);
    if (stride % width != 0 && shape[axis] > 1) {
      throw InvalidArgument(
          "the NumPy array's elements lie at distances that are not multiples of their size (a field of a "
          "record?); pass numpy.ascontiguousarray(x)");
    }
    strides[axis] = stride / width;
  }
  const std::span<const std::int64_t> shape_span(shape.data(), std::size_t(axes)),
      stride_span(strides.data(), std::size_t(axes));
  void* const data = PyArray_DATA(array);
  if (!PyArray_ISWRITEABLE(array)) return View::read_only(data, *dtype, shape_span, stride_span);
  return View(data, *dtype, shape_span, stride_span);
}

namespace {

/// In C order; `data` is null for memory of its own.
nb::object new_contiguous(nb::handle like, std::span<const std::int64_t> shape, void* data) {
  PyArray_Descr* const descr = PyArray_DESCR(reinterpret_cast<PyArrayObject*>(like.ptr()));
  std::array<npy_intp, View::max_axes + 1> lengths;
  for (std::size_t i = 0; i < shape.size(); ++i) lengths[i] = shape[i];
  Py_INCREF(descr);
  const int flags = data != nullptr ? NPY_ARRAY_CARRAY : 0;
  PyObject* const made =
      PyArray_NewFromDescr(&PyArray_Type, descr, int(shape.size()), lengths.data(), nullptr, data, flags, nullptr);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

void keep_for(const nb::object& array, nb::handle owner) {
  Py_INCREF(owner.ptr());
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), owner.ptr()) < 0) throw nb::python_error();
}

}  // namespace

nb::object new_numpy_like(nb::handle like, std::span<const std::int64_t> shape) {
  return new_contiguous(like, shape, nullptr);
}

void* numpy_data(nb::handle array) { return PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())); }

nb::object new_numpy_over(nb::handle like, std::span<const std::int64_t> shape, void* data, nb::handle owner) {
  nb::object array = new_contiguous(like, shape, data);
  keep_for(array, owner);
  return array;
}

nb::object numpy_over(const View& view, nb::handle owner) {
  need_numpy();
  std::array<npy_intp, View::max_axes> shape{}, strides{};
  for (std::size_t i = 0; i < view.shape().size(); ++i) {
    shape[i] = view.shape()[i];
    strides[i] = view.strides()[i] * npy_intp(size_of(view.dtype()));
  }
  const int flags = view.is_read_only() ? 0 : NPY_ARRAY_WRITEABLE;
  PyObject* const made = PyArray_NewFromDescr(&PyArray_Type, new_descr(view.dtype()), view.axes(), shape.data(),
                                              strides.data(), view.data(), flags, nullptr);
  if (made == nullptr) throw nb::python_error();
  nb::object array = nb::steal(made);
  keep_for(array, owner);
  return array;
}

}  // namespace tutti::python
