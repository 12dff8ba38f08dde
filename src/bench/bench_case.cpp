// bench_case.cpp: what is measured, and its text.
// SPDX-License-Identifier: Apache-2.0
#include "bench/bench_case.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include <tutti/error.hpp>

namespace tutti::bench {

namespace {

constexpr std::string_view exchange_names[] = {"ping_pong", "sendrecv", "window"};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

template <class T>
T number(std::string_view word, std::string_view line) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !(value >= 0)) {
    throw InvalidArgument(fmt::format("benchmark: \"{}\" is not a number, in the line \"{}\"", word, line));
  }
  return value;
}

}  // namespace

std::string_view name_of(Memory memory) { return memory == Memory::heap ? "heap" : "empty"; }

Memory memory_from_name(std::string_view name) {
  if (name == "heap") return Memory::heap;
  if (name == "empty") return Memory::empty;
  throw InvalidArgument(fmt::format("\"{}\" is not a kind of memory; there are heap and empty", name));
}

std::string_view bench_name_of(const BenchVerb& verb) {
  return verb.verb == Verb::send ? exchange_names[static_cast<std::size_t>(verb.exchange)] : tutti::name_of(verb.verb);
}

BenchVerb verb_from_bench_name(std::string_view name) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  std::vector<std::string_view> names;
  for (const BenchVerb& verb : all_verbs()) {
    if (bench_name_of(verb) == plain) return verb;
    names.push_back(bench_name_of(verb));
  }
  throw InvalidArgument(fmt::format("there is no verb {} to measure; there are {}", name, fmt::join(names, ", ")));
}

std::vector<BenchVerb> all_verbs() {
  std::vector<BenchVerb> verbs;
  for (int i = 0; i < verb_count; ++i) {
    if (const auto verb = static_cast<Verb>(i); verb != Verb::recv) verbs.emplace_back(verb);
    if (static_cast<Verb>(i) != Verb::send) continue;
    for (const Exchange exchange : {Exchange::sendrecv, Exchange::window}) verbs.emplace_back(Verb::send, exchange);
  }
  return verbs;
}

bool has_in_place_form(Verb verb) { return reduces(verb) && keeps_shape(verb); }

BenchCase make_bench_case(BenchCase wish, std::int64_t bytes, int ranks) {
  const bool is_window = wish.verb == Verb::send && wish.exchange == Exchange::window;
  const std::int64_t unit = is_window ? window_messages : has_blocks(wish.verb) ? ranks : 1;
  const std::int64_t count = bytes / static_cast<std::int64_t>(size_of(wish.dtype));
  wish.count = wish.verb == Verb::barrier ? 0 : std::max(unit, count / unit * unit);
  wish.in_place = wish.in_place && has_in_place_form(wish.verb);
  return wish;
}

std::string to_line(const Turn& turn) {
  const BenchCase& bench_case = turn.bench_case;
  return fmt::format("{} {} {} {} {} {} {} {}", bench_name_of(bench_case.bench_verb()),
                     tutti::name_of(bench_case.dtype), bench_case.count,
                     bench_case.in_place ? "in_place" : "out_of_place", name_of(bench_case.memory),
                     bench_case.is_stale ? "stale" : "fresh", turn.calls, turn.batches);
}

Turn turn_from_line(std::string_view line) {
  const auto words = words_of(line);
  if (words.size() != 8) throw InvalidArgument(fmt::format("benchmark: \"{}\" is not a turn", line));
  const BenchVerb verb = verb_from_bench_name(words[0]);
  Turn turn{.bench_case = {.verb = verb.verb,
                           .dtype = dtype_from_name(words[1]),
                           .count = number<std::int64_t>(words[2], line),
                           .in_place = words[3] == "in_place",
                           .memory = memory_from_name(words[4]),
                           .exchange = verb.exchange,
                           .is_stale = words[5] == "stale"},
            .calls = number<int>(words[6], line),
            .batches = number<int>(words[7], line)};
  return turn;
}

std::string to_line(const Answer& answer) {
  if (!answer.trouble.empty()) {
    std::string text = answer.trouble;
    std::replace(text.begin(), text.end(), '\n', ' ');
    return "trouble " + text;
  }
  return fmt::format("ok {} {:.4f}", answer.wrong, fmt::join(answer.us_per_call, " "));
}

Answer answer_from_line(std::string_view line) {
  if (line.starts_with("trouble ")) return {.trouble = std::string(line.substr(8))};
  const auto words = words_of(line);
  if (words.size() < 3 || words[0] != "ok") {
    throw InvalidArgument(fmt::format("benchmark: \"{}\" is not an answer", line));
  }
  Answer answer{.wrong = number<std::int64_t>(words[1], line)};
  for (std::size_t i = 2; i < words.size(); ++i) answer.us_per_call.push_back(number<double>(words[i], line));
  return answer;
}

}  // namespace tutti::bench
