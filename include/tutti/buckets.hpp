// buckets.hpp: gradients averaged while the others are still being computed: small ones together, in the order they come.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include <tutti/group.hpp>

namespace tutti {

struct BucketLimits {
  std::int64_t bytes = std::int64_t{25} << 20;
  std::int64_t first_bytes = std::int64_t{1} << 20;  // the first one is small, so that communication starts early
};

struct BucketItem {
  std::int64_t bytes = 0;
  DType dtype = DType::float32;
};

/// Which items share a bucket, if they become ready in this order (none given: as listed). Items of one dtype lie together;
/// a bucket is closed once it has reached its limit, and buckets are in the order in which they can be closed. Pure.
std::vector<std::vector<int>> plan_buckets(std::span<const BucketItem> items, std::span<const int> order,
                                           const BucketLimits& limits = {});

/// Tells which buckets can start. Ranks become ready in different orders, but must start the same buckets in the same order:
/// a full bucket waits for all before it. Pure.
class BucketSchedule {
 public:
  explicit BucketSchedule(std::vector<std::vector<int>> plan);

  /// An item is there: the buckets that start now, in order; often none. InvalidArgument if it was there already.
  std::vector<int> ready(int item);
  /// Items that have not come since the last begin().
  [[nodiscard]] std::vector<int> missing() const;
  [[nodiscard]] bool is_complete() const { return started_ == static_cast<int>(plan_.size()); }
  /// The items in the order they came.
  [[nodiscard]] const std::vector<int>& arrivals() const { return arrivals_; }
  /// A new round.
  void begin();

  [[nodiscard]] const std::vector<std::vector<int>>& plan() const { return plan_; }

 private:
  std::vector<std::vector<int>> plan_;
  std::vector<int> bucket_of_, waiting_;  // per item; per bucket: how many are missing
  std::vector<char> is_ready_;
  std::vector<int> arrivals_;
  int started_ = 0;
};

/// Data parallelism for plain C++: owns the memory of the gradients, in buckets that neighbours reach without a copy.
///
///     tutti::Buckets buckets(world, {{.count = w.size()}, {.count = b.size()}});
///     buckets.begin(images_of_this_rank);
///     compute(buckets.gradient<float>(1)); buckets.ready(1);      // starts what is complete, and returns
///     compute(buckets.gradient<float>(0)); buckets.ready(0);
///     buckets.finish();                                           // now they hold the mean over all ranks' samples
///
/// Calls come from one thread at a time. A round that is not finished leaves its work to ~Buckets, which waits for it.
class Buckets {
 public:
  struct Gradient {
    std::size_t count = 0;
    DType dtype = DType::float32;
  };
  /// The gradients in the order of the parameters; the last layer's come first, so buckets are filled from the end.
  Buckets(Group group, std::span<const Gradient> gradients, const BucketLimits& limits = {});
  Buckets(Group group, std::initializer_list<Gradient> gradients, const BucketLimits& limits = {})
      : Buckets(std::move(group), std::span(gradients.begin(), gradients.size()), limits) {}
  Buckets(const Buckets&) = delete;  // work under way points into it
  Buckets& operator=(const Buckets&) = delete;

  /// A gradient's memory; its contents stay until the next round overwrites them.
  template <Element T>
  [[nodiscard]] std::span<T> gradient(int index) {
    return {static_cast<T*>(memory_of(index, dtype_of<T>)), counts_[static_cast<std::size_t>(index)]};
  }

  /// A new round. With a weight (this rank's samples), each rank's gradient is the mean over its own samples, and the result
  /// the mean over all ranks' samples; without one, ranks count alike.
  void begin(std::optional<double> weight = std::nullopt);
  /// The gradient is written: whatever is complete is sent on its way.
  void ready(int index);
  /// Waits for all. Gradients that were not announced count as they stand. InvalidArgument without begin().
  void finish(Duration timeout = {});

  [[nodiscard]] int bucket_count() const { return static_cast<int>(schedule_.plan().size()); }

 private:
  [[nodiscard]] void* memory_of(int index, DType dtype);
  [[nodiscard]] View view_of(int bucket);
  void start(int bucket);

  Group group_;
  std::vector<std::size_t> counts_;
  std::vector<DType> dtypes_;
  BucketSchedule schedule_;
  std::vector<Buffer<std::uint8_t>> buffers_;  // one per bucket
  std::vector<std::size_t> offsets_;           // of each gradient in its bucket, in bytes
  std::vector<int> bucket_of_;
  std::vector<Work> works_;
  std::optional<double> weight_;
  double total_weight_ = 0;
  std::optional<Work> weight_work_;
  bool in_round_ = false;
};

}  // namespace tutti
