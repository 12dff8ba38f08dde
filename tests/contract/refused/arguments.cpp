// arguments.cpp: calls that must not compile; each is tried alone, by its macro. Without one, everything compiles.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <tutti/tutti.hpp>

std::vector<float> fresh() { return {1, 2}; }

void calls(tutti::Group& world) {
  std::vector<float> lasting{1, 2};
  std::vector<float> all(2);
  tutti::Work work = world.start(tutti::AllReduce{.data = lasting});
  work.wait();
  world.all_reduce(lasting);
  all = world.all_gather(lasting);

#if defined(STARTS_WITH_A_TEMPORARY)
  tutti::Work refused = world.start(tutti::AllReduce{.data = std::vector<float>{1, 2}});
#elif defined(STARTS_INTO_A_TEMPORARY)
  tutti::Work refused = world.start(tutti::AllReduce{.data = lasting, .out = fresh()});
#elif defined(REDUCES_A_TEMPORARY)
  world.all_reduce(fresh());
#elif defined(SENDS_A_TEMPORARY)
  tutti::Work refused = world.isend(fresh(), 0);
#elif defined(REDUCES_WORDS)
  std::vector<const char*> words{"a", "b"};
  world.all_reduce(words);
#elif defined(RETURNS_PACKED_BOOLS)
  std::vector<bool> flags{true, false};
  auto refused = world.all_gather(flags);
#elif defined(COPIES_A_WORK)
  tutti::Work refused = work;
#elif defined(SWAPS_ROOT_AND_REDUCTION)
  world.reduce(lasting, {.op = 1, .root = tutti::Op::sum});
#endif
}
