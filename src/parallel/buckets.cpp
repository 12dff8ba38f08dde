// buckets.cpp: which gradients travel together, when they may start, and the averaging itself.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include <tutti/buckets.hpp>
#include <tutti/error.hpp>

#include "kernel/kernel.hpp"

namespace tutti {
namespace {

constexpr std::size_t alignment = 64;  // of each gradient in its bucket: a cache line

std::vector<BucketItem> items_of(std::span<const Buckets::Gradient> gradients) {
  std::vector<BucketItem> items;
  for (const Buckets::Gradient& gradient : gradients) {
    if (!is_floating(gradient.dtype) && !is_complex(gradient.dtype)) {
      throw InvalidArgument(fmt::format("gradients are floating-point or complex, not {}", name_of(gradient.dtype)));
    }
    items.push_back({static_cast<std::int64_t>(gradient.count * size_of(gradient.dtype)), gradient.dtype});
  }
  return items;
}

std::vector<int> from_the_end(std::size_t count) {
  std::vector<int> order(count);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

}  // namespace

std::vector<std::vector<int>> plan_buckets(std::span<const BucketItem> items, std::span<const int> order,
                                           const BucketLimits& limits) {
  std::vector<int> listed(items.size());
  std::iota(listed.begin(), listed.end(), 0);
  if (order.empty()) order = listed;
  if (!std::ranges::is_permutation(order, listed)) {
    throw InvalidArgument(
        fmt::format("cannot fill buckets: the order must name each of the {} items once", items.size()));
  }
  struct Open {
    std::vector<int> items;
    std::int64_t bytes = 0;
  };
  std::map<DType, Open> open;
  std::vector<std::vector<int>> plan;
  for (const int index : order) {
    const BucketItem& item = items[static_cast<std::size_t>(index)];
    Open& bucket = open[item.dtype];
    bucket.items.push_back(index);
    bucket.bytes += item.bytes;
    if (bucket.bytes >= (plan.empty() ? limits.first_bytes : limits.bytes)) {
      plan.push_back(std::move(bucket.items));
      bucket = {};
    }
  }
  // What is left over closes in the order of its last item.
  const auto place_of_last = [&](const std::vector<int>& bucket) {
    return std::ranges::find(order, bucket.back()) - order.begin();
  };
  std::vector<std::vector<int>> rest;
  for (auto& [dtype, bucket] : open) {
    if (!bucket.items.empty()) rest.push_back(std::move(bucket.items));
  }
  std::ranges::sort(rest, {}, place_of_last);
  std::ranges::move(rest, std::back_inserter(plan));
  return plan;
}

BucketSchedule::BucketSchedule(std::vector<std::vector<int>> plan) : plan_(std::move(plan)) {
  std::size_t count = 0;
  for (const auto& bucket : plan_) count += bucket.size();
  bucket_of_.assign(count, -1);
  for (std::size_t bucket = 0; bucket < plan_.size(); ++bucket) {
    for (const int item : plan_[bucket]) {
      if (item < 0 || static_cast<std::size_t>(item) >= count || bucket_of_[static_cast<std::size_t>(item)] != -1) {
        throw InvalidArgument(fmt::format("a plan of {} items must name each once; item {} does not fit", count, item));
      }
      bucket_of_[static_cast<std::size_t>(item)] = static_cast<int>(bucket);
    }
  }
  begin();
}

void BucketSchedule::begin() {
  waiting_.clear();
  for (const auto& bucket : plan_) waiting_.push_back(static_cast<int>(bucket.size()));
  is_ready_.assign(bucket_of_.size(), 0);
  arrivals_.clear();
  started_ = 0;
}

std::vector<int> BucketSchedule::ready(int item) {
  const auto index = static_cast<std::size_t>(item);
  if (item < 0 || index >= bucket_of_.size()) {
    throw InvalidArgument(fmt::format("there is no gradient {}: there are {}", item, bucket_of_.size()));
  }
  if (is_ready_[index]) throw InvalidArgument(fmt::format("gradient {} was announced twice in one round", item));
  is_ready_[index] = 1;
  arrivals_.push_back(item);
  --waiting_[static_cast<std::size_t>(bucket_of_[index])];
  std::vector<int> startable;
  while (!is_complete() && waiting_[static_cast<std::size_t>(started_)] == 0) startable.push_back(started_++);
  return startable;
}

std::vector<int> BucketSchedule::missing() const {
  std::vector<int> items;
  for (std::size_t i = 0; i < is_ready_.size(); ++i) {
    if (!is_ready_[i]) items.push_back(static_cast<int>(i));
  }
  return items;
}

Buckets::Buckets(Group group, std::span<const Gradient> gradients, const BucketLimits& limits)
    : group_(std::move(group)),
      schedule_(plan_buckets(items_of(gradients), from_the_end(gradients.size()), limits)),
      offsets_(gradients.size()),
      bucket_of_(gradients.size()) {
  for (const Gradient& gradient : gradients) {
    counts_.push_back(gradient.count);
    dtypes_.push_back(gradient.dtype);
  }
  for (std::size_t bucket = 0; bucket < schedule_.plan().size(); ++bucket) {
    std::size_t bytes = 0;
    for (const int item : schedule_.plan()[bucket]) {
      const auto index = static_cast<std::size_t>(item);
      offsets_[index] = bytes;
      bucket_of_[index] = static_cast<int>(bucket);
      bytes += (counts_[index] * size_of(dtypes_[index]) + alignment - 1) / alignment * alignment;
    }
    buffers_.push_back(group_.empty<std::uint8_t>(bytes));
    std::fill(buffers_.back().begin(), buffers_.back().end(), std::uint8_t{0});  // the gaps are reduced, too
  }
}

void* Buckets::memory_of(int index, DType dtype) {
  const auto i = static_cast<std::size_t>(index);
  if (index < 0 || i >= counts_.size()) {
    throw InvalidArgument(fmt::format("there is no gradient {}: there are {}", index, counts_.size()));
  }
  if (dtypes_[i] != dtype) {
    throw InvalidArgument(fmt::format("gradient {} is {}, not {}", index, name_of(dtypes_[i]), name_of(dtype)));
  }
  return buffers_[static_cast<std::size_t>(bucket_of_[i])].data() + offsets_[i];
}

View Buckets::view_of(int bucket) {
  Buffer<std::uint8_t>& buffer = buffers_[static_cast<std::size_t>(bucket)];
  const DType dtype = dtypes_[static_cast<std::size_t>(schedule_.plan()[static_cast<std::size_t>(bucket)].front())];
  const auto count = static_cast<std::int64_t>(buffer.size() / size_of(dtype));
  return {buffer.data(), dtype, std::span(&count, 1)};
}

void Buckets::begin(std::optional<double> weight) {
  if (in_round_) throw InvalidArgument("a round of gradients is under way: call finish() before begin()");
  if (weight && !(*weight >= 0))
    throw InvalidArgument(fmt::format("the weight is a number of samples, not {}", *weight));
  schedule_.begin();
  weight_ = weight;
  in_round_ = true;
  if (!weight) return;
  total_weight_ = *weight;
  weight_work_ = group_.start(AllReduce{.data = std::span(&total_weight_, 1)});
}

void Buckets::start(int bucket) {
  const View data = view_of(bucket);
  if (weight_) kernel::scale(data.dtype(), data.data(), data.data(), *weight_, data.count());
  works_.push_back(group_.start(AllReduce{.data = data, .op = weight_ ? Op::sum : Op::mean}));
}

void Buckets::ready(int index) {
  if (!in_round_) throw InvalidArgument("no round of gradients is under way: call begin() first");
  for (const int bucket : schedule_.ready(index)) start(bucket);
}

void Buckets::finish(Duration timeout) {
  if (!in_round_) throw InvalidArgument("no round of gradients is under way: call begin() first");
  for (const int item : schedule_.missing()) ready(item);
  const auto wait = [&](Work& work) { timeout == Duration{} ? work.wait() : work.wait(timeout); };
  if (weight_work_) wait(*weight_work_);
  for (Work& work : works_) wait(work);
  if (weight_) {
    if (total_weight_ <= 0) throw InvalidArgument("no rank had any samples: the weights add up to 0");
    for (int bucket = 0; bucket < bucket_count(); ++bucket) {
      const View data = view_of(bucket);
      kernel::divide(data.dtype(), data.data(), data.data(), total_weight_, data.count());
    }
  }
  works_.clear();
  weight_work_.reset();
  in_round_ = false;
}

}  // namespace tutti
