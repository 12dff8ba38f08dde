// main.cpp: a program that knows Tutti only from its installed headers and library.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>
#include <vector>

#include <tutti/tutti.hpp>

struct Range {
  double low, high;
};

int main() {
  const tutti::Group world = tutti::init();  // alone
  std::vector<float> values(12, 1.0f);
  world.all_reduce(values);
  const tutti::View view(values);
  const std::string name(tutti::name_of(view.dtype()));
  bool caught = false;
  try {
    (void)tutti::dtype_from_name("float31");
  } catch (const tutti::InvalidArgument&) {  // exceptions keep their type across the library's border
    caught = true;
  }
  std::printf("%lld × %s, %s\n", static_cast<long long>(view.count()), name.c_str(),
              tutti::name_of(tutti::Op::sum).c_str());
  const auto join = tutti::op([](Range a, Range b) {
    return Range{a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
  });
  const Range range = world.all_reduce(Range{1, 2}, {.op = join});
  tutti::Work work = world.start(tutti::AllReduce{.data = values});
  tutti::wait_all(work);
  if (range.high != 2 || world.all_reduce(1.5f) != 1.5f) return 1;
  return view.count() == 12 && name == "float32" && caught && values[11] == static_cast<float>(world.size()) ? 0 : 1;
}
