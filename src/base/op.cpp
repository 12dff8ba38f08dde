// op.cpp: names of reductions.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/op.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include <tutti/error.hpp>

namespace tutti {
namespace {

constexpr std::array<std::string_view, 8> op_names = {"sum", "mean", "product", "min", "max", "band", "bor", "bxor"};
constexpr std::array<Op, 8> ops = {Op::sum, Op::mean, Op::product, Op::min, Op::max, Op::band, Op::bor, Op::bxor};

}  // namespace

std::string name_of(const Op& op) {
  if (op.kind() == Op::Kind::own) return "a function of the program's own";
  if (op.kind() == Op::Kind::premul) return fmt::format("premul({})", op.factor());
  const auto index = static_cast<std::size_t>(op.kind());
  return index < op_names.size() ? std::string(op_names[index]) : "unknown reduction";
}

Op op_from_name(std::string_view name) {
  for (std::size_t i = 0; i < op_names.size(); ++i) {
    if (op_names[i] == name) return ops[i];
  }
  throw InvalidArgument(fmt::format("\"{}\" is not a reduction; the names are {} (premul is made with its factor)",
                                    name, fmt::join(op_names, ", ")));
}

}  // namespace tutti
