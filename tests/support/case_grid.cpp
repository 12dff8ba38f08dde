// case_grid.cpp: which cases are run: all small ones, and a random sample of the others.
// SPDX-License-Identifier: Apache-2.0
#include "case_grid.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "base/random.hpp"
#include "base/sanitizers.hpp"

namespace tutti::contract {
namespace {

constexpr int collective_count = static_cast<int>(Verb::send);
constexpr int failures_told = 5;
const std::vector<Op> all_ops = {Op::sum,  Op::mean, Op::product, Op::min,         Op::max,
                                 Op::band, Op::bor,  Op::bxor,    Op::premul(0.75)};

#if TUTTI_THREAD_SANITIZER
constexpr int share = 12;
#elif TUTTI_ADDRESS_SANITIZER
constexpr int share = 8;
#else
constexpr int share = 1;
#endif

std::uint64_t draw_seed() {
  const char* given = std::getenv("TUTTI_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "cases are drawn by TUTTI_SEED=" << seed << std::endl;
  return seed;
}

template <class T>
T pick(Random& random, int count) {
  return static_cast<T>(random.below(static_cast<std::uint64_t>(count)));
}

template <class T>
T one_of(Random& random, std::span<const T> values) {
  return values[random.below(values.size())];
}

Case draw(Random& random, std::span<const std::int64_t> lengths) {
  Case call;
  do {
    call.verb = pick<Verb>(random, collective_count);
    call.dtype = pick<DType>(random, dtype_count);
    call.op = one_of<Op>(random, all_ops);
    call.length = one_of<std::int64_t>(random, lengths);
    call.shape = random.chance(0.4) ? Shape::line : pick<Shape>(random, shape_count);
    call.input_memory = random.chance(0.5) ? Memory::contiguous : pick<Memory>(random, memory_count);
    call.output_memory = random.chance(0.5) ? call.input_memory : pick<Memory>(random, memory_count);
    call.in_place = random.chance(0.5);
    call.other_axis = random.chance(0.2);
    call.asynchronous = random.chance(0.5);
    call.sizing = pick<Sizing>(random, sizing_count);
    call.root = static_cast<std::uint32_t>(random.below(64));
    call.seed = random.next();
  } while (!makes_sense(call));
  return call;
}

}  // namespace

std::uint64_t seed_of_run() {
  static const std::uint64_t seed = draw_seed();
  return seed;
}

bool is_soak() {
  const char* value = std::getenv("TUTTI_SOAK");
  return value != nullptr && std::string_view(value) == "1";
}

int lot(int count) { return is_soak() ? 20 * count : std::max(1, count / share); }

std::vector<GroupCase> lot(std::vector<GroupCase> cases, std::uint64_t seed) {
  if (share == 1 || is_soak()) return cases;
  Random random(seed);
  std::erase_if(cases, [&](const GroupCase&) { return !random.chance(1.0 / share); });
  return cases;
}

std::vector<GroupCase> every_call(std::span<const std::int64_t> lengths, std::uint64_t seed) {
  std::vector<GroupCase> cases;
  Random random(seed);
  for (int verb = 0; verb < collective_count; ++verb) {
    for (int dtype = 0; dtype < dtype_count; ++dtype) {
      for (const Op& op : all_ops) {
        for (const std::int64_t length : lengths) {
          for (const bool in_place : {false, true}) {
            const bool repeats = (!reduces(Verb(verb)) && op != Op::sum) || (Verb(verb) == Verb::barrier && dtype > 0);
            Case call{.verb = Verb(verb), .dtype = DType(dtype), .op = op, .length = length, .in_place = in_place};
            call.root = static_cast<std::uint32_t>(random.below(64));
            call.seed = random.next();
            if (!repeats && makes_sense(call)) cases.push_back({GroupKind::world, call});
          }
        }
      }
    }
  }
  return cases;
}

std::vector<GroupCase> some_calls(int count, std::span<const std::int64_t> lengths, std::uint64_t seed) {
  std::vector<GroupCase> cases;
  Random random(seed);
  for (int i = 0; i < count; ++i) {
    const auto group = pick<GroupKind>(random, group_kind_count);
    cases.push_back({group, draw(random, lengths)});
  }
  return cases;
}

void run_calls(Group& world, std::span<const GroupCase> cases, const std::function<void(const std::string&)>& fail) {
  Groups groups(world);
  int failures = 0;
  for (const GroupCase& each : cases) {
    Group& group = groups[each.group];
    if (group.rank() < 0) continue;
    try {
      if (const auto difference = perform(group, each.call); difference && ++failures <= failures_told) {
        fail(fmt::format("group: {}; {}", name_of(each.group), *difference));
      }
    } catch (const std::exception& error) {
      fail(fmt::format("group: {}; rank {} of {}: {}: {}", name_of(each.group), group.rank(), group.size(),
                       describe(each.call), error.what()));
      throw;
    }
  }
  if (failures > failures_told) fail(fmt::format("… and {} more", failures - failures_told));
}

}  // namespace tutti::contract
