// call.cpp: a collective as a value.
// SPDX-License-Identifier: Apache-2.0
#include "parallel/call.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "group/check.hpp"

namespace tutti::parallel {
namespace {

constexpr std::string_view sendrecv_name = "sendrecv";

template <class Number>
Number number_from(std::string_view key, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InvalidArgument(fmt::format("a call's text has {}={}, which is not a number", key, text));
  }
  return value;
}

std::vector<std::int64_t> numbers_from(std::string_view key, std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    numbers.push_back(number_from<std::int64_t>(key, text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return numbers;
}

Pairs pairs_from(std::span<const std::int64_t> numbers) {
  if (numbers.size() % 2 != 0) throw InvalidArgument("a call's text has half a pair of ranks");
  Pairs pairs;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    pairs.emplace_back(static_cast<int>(numbers[i]), static_cast<int>(numbers[i + 1]));
  }
  return pairs;
}

void set_field(Call& call, std::string_view key, std::string_view text) {
  if (key == "op") call.op = op_from_name(text);
  else if (key == "premul") call.op = Op::premul(number_from<double>(key, text));
  else if (key == "root") call.root = number_from<int>(key, text);
  else if (key == "axis") call.axis = number_from<int>(key, text);
  else if (key == "concat") call.concat_axis = number_from<int>(key, text);
  else if (key == "stack") call.stack = number_from<int>(key, text) != 0;
  else if (key == "uneven") call.uneven = number_from<int>(key, text) != 0;
  else if (key == "sizes") call.sizes = numbers_from(key, text);
  else if (key == "recv_sizes") call.recv_sizes = numbers_from(key, text);
  else if (key == "pairs") call.pairs = pairs_from(numbers_from(key, text));
  else if (key == "reverse") call.reverse = number_from<int>(key, text) != 0;
  else if (key == "dst") call.destination = number_from<int>(key, text);
  else if (key == "src") call.source = number_from<int>(key, text);
  else if (key == "tag") call.tag = number_from<std::uint32_t>(key, text);
  else if (key == "structure") call.structure = number_from<std::uint64_t>(key, text);
  else throw InvalidArgument(fmt::format("a call's text has an unknown field {}", key));
}

}  // namespace

std::string_view name_of(const Call& call) { return call.is_sendrecv ? sendrecv_name : name_of(call.verb); }

std::vector<std::string> call_names() {
  std::vector<std::string> names{std::string(sendrecv_name)};
  for (const VerbTraits& verb : verb_table) {
    if (!verb.is_message) names.emplace_back(verb.name);
  }
  return names;
}

Call call_named(std::string_view name) {
  if (name == sendrecv_name) return {.verb = Verb::permute, .is_sendrecv = true};
  const Verb verb = verb_from_name(name);
  if (is_message(verb)) {
    throw InvalidArgument(
        fmt::format("{} has no result on every rank, so it is not a call; use isend and irecv", name));
  }
  return {.verb = verb};
}

std::string encode(const Call& call) {
  const Call usual;
  std::string text(name_of(call));
  const auto add = [&text](std::string_view key, const auto& value) { text += fmt::format(" {}={}", key, value); };
  if (call.op.kind() == Op::Kind::premul) add("premul", fmt::format("{}", call.op.factor()));
  else if (!(call.op == usual.op)) add("op", name_of(call.op));
  if (call.root != 0) add("root", call.root);
  if (call.axis != 0) add("axis", call.axis);
  if (call.concat_axis != 0) add("concat", call.concat_axis);
  if (call.stack) add("stack", 1);
  if (call.uneven) add("uneven", 1);
  if (!call.sizes.empty()) add("sizes", fmt::format("{}", fmt::join(call.sizes, ",")));
  if (!call.recv_sizes.empty()) add("recv_sizes", fmt::format("{}", fmt::join(call.recv_sizes, ",")));
  std::vector<int> flat;
  for (const auto& [from, to] : call.pairs) flat.insert(flat.end(), {from, to});
  if (!flat.empty()) add("pairs", fmt::format("{}", fmt::join(flat, ",")));
  if (call.reverse) add("reverse", 1);
  if (call.destination != usual.destination) add("dst", call.destination);
  if (call.source != usual.source) add("src", call.source);
  if (call.tag != 0) add("tag", call.tag);
  if (call.structure != 0) add("structure", call.structure);
  return text;
}

Call decode_call(std::string_view text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  Call call = call_named(text.substr(0, end));
  text.remove_prefix(end);
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view field = text.substr(0, text.find(' '));
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos)
      throw InvalidArgument(fmt::format("a call's text has no value in '{}'", field));
    set_field(call, field.substr(0, equals), field.substr(equals + 1));
    text.remove_prefix(field.size());
  }
  return call;
}

Request request_of(const Call& call, const View& input, const View& output) {
  return {.verb = call.verb,
          .input = input,
          .output = output,
          .op = call.op,
          .root = call.root,
          .axis = call.axis,
          .concat_axis = call.concat_axis,
          .stack = call.stack,
          .uneven = call.uneven,
          .sizes = call.sizes,
          .recv_sizes = call.recv_sizes,
          .pairs = call.pairs,
          .structure = call.structure,
          .kind = call.kind};
}

bool gives_input_back(const Call& call, int rank) { return root_gets(call.verb) && rank != call.root; }

bool learns_sizes(const Call& call) {
  if (joins(call.verb)) return call.uneven && call.sizes.empty();
  return call.verb == Verb::all_to_all && !call.sizes.empty() && call.recv_sizes.empty() &&
         call.axis == call.concat_axis;
}

std::vector<std::int64_t> output_shape(const Call& call, std::span<const std::int64_t> shape, int rank, int size) {
  std::vector<std::int64_t> same(shape.begin(), shape.end());
  if (call.is_sendrecv || call.verb == Verb::barrier) return same;
  if (learns_sizes(call)) {
    throw InvalidArgument(
        fmt::format("{}: the shape of the result depends on the other ranks' sizes; give them with {}", name_of(call),
                    call.verb == Verb::all_to_all ? "recv_sizes=" : "sizes="));
  }
  static constexpr float nowhere{};  // only the shape is looked at
  const View array = View::read_only(&nowhere, DType::float32, shape);
  Request request = request_of(call, array, View());
  if (!applies(call.op.kind(), DType::float32)) request.op = Op::sum;  // which dtypes it takes is the call's business
  request.allocate = [](DType, std::span<const std::int64_t>, std::uint8_t) { return View(); };
  if (root_gives(call.verb)) {
    if (call.root < 0 || call.root >= size) {
      throw InvalidArgument(fmt::format("{}: root {} is not a rank of this group, which has ranks 0 to {}",
                                        name_of(call), call.root, size - 1));
    }
    request.root = rank;  // every rank knows the root's array
  }
  BlockLayout layout;
  check_collective(request, rank, size, layout);
  return gives_input_back(call, rank) ? same : layout.output_shape;
}

}  // namespace tutti::parallel
