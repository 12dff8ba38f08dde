// kamping_sample_sort.cpp: KaMPIng: the sample sort of its paper
// SPDX-License-Identifier: Apache-2.0
// ranks: 4
#include <algorithm>
#include <cstdio>
#include <vector>

#include <tutti/tutti.hpp>

int main() {
  const tutti::Group comm = tutti::init();
  std::vector<int> data;
  for (int i = 0; i < 6; ++i) data.push_back((7 * i + 5 * comm.rank()) % 24);
  std::vector<int> samples = comm.all_gather(std::vector<int>{data[0], data[2], data[4]});
  std::sort(samples.begin(), samples.end());
  std::vector<std::vector<int>> buckets(static_cast<std::size_t>(comm.size()));
  for (int each : data) {
    std::size_t bucket = 0;
    while (bucket + 1 < buckets.size() && each > samples[3 * (bucket + 1)]) ++bucket;
    buckets[bucket].push_back(each);
  }
  std::vector<int> sent;
  tutti::Sizes sizes;
  for (const auto& bucket : buckets) {
    sent.insert(sent.end(), bucket.begin(), bucket.end());
    sizes.push_back(static_cast<std::int64_t>(bucket.size()));
  }
  std::vector<int> mine = comm.all_to_all(sent, {.split_sizes = sizes});
  std::sort(mine.begin(), mine.end());
  const std::vector<int> all = comm.gather(mine, {.uneven = true});
  if (comm.rank() == 0)
    std::printf("%zu %s\n", all.size(), std::is_sorted(all.begin(), all.end()) ? "sorted" : "not sorted");
}

// prints:
//   24 sorted
