// buckets.hpp: averages gradients while others are still being computed; small gradients share a bucket.
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
  std::int64_t first_bytes = std::int64_t{1} << 20;  // the first bucket is small, so that communication starts early
};

struct BucketItem {
  std::int64_t bytes = 0;
  DType dtype = DType::float32;
};

/// Assigns items to buckets. `order` is the order in which the items become ready (none given: as listed). A bucket
/// holds items of one dtype and is closed once it reaches its limit; buckets are listed in the order in which they
/// close. No side effects.
std::vector<std::vector<int>> plan_buckets(std::span<const BucketItem> items, std::span<const int> order,
                                           const BucketLimits& limits = {});

/// Tells which buckets may start. Ranks become ready in different orders but must start the same buckets in the same
/// order, so a full bucket waits for every bucket before it. No side effects.
class BucketSchedule {
 public:
  explicit BucketSchedule(std::vector<std::vector<int>> plan);

  /// Marks an item ready and returns the buckets that start now, in order; often none. InvalidArgument if it was ready
  /// already.
  std::vector<int> ready(int item);
  /// Items that have not become ready since the last begin().
  [[nodiscard]] std::vector<int> missing() const;
  [[nodiscard]] bool is_complete() const { return started_ == static_cast<int>(plan_.size()); }
  /// The items in the order in which they became ready.
  [[nodiscard]] const std::vector<int>& arrivals() const { return arrivals_; }
  /// Starts a new round.
  void begin();

  [[nodiscard]] const std::vector<std::vector<int>>& plan() const { return plan_; }

 private:
  std::vector<std::vector<int>> plan_;
  std::vector<int> bucket_of_, waiting_;  // per item; per bucket: how many are missing
  std::vector<char> is_ready_;
  std::vector<int> arrivals_;
  int started_ = 0;
};

/// Data parallelism for plain C++: owns the memory of the gradients, in buckets that local peers read without a copy.
///
///     tutti::Buckets buckets(world, {{.count = w.size()}, {.count = b.size()}});
///     buckets.begin(images_of_this_rank);
///     compute(buckets.gradient<float>(1)); buckets.ready(1);      // starts the complete buckets and returns
///     compute(buckets.gradient<float>(0)); buckets.ready(0);
///     buckets.finish();                                           // now they hold the mean over all ranks' samples
///
/// Calls come from one thread at a time. ~Buckets waits for the work of a round that was not finished.
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

  /// Starts a new round. With a weight (this rank's number of samples), each rank's gradient is the mean over its own
  /// samples and the result is the mean over all ranks' samples. Without a weight every rank counts the same.
  void begin(std::optional<double> weight = std::nullopt);
  /// The gradient is written. Starts every bucket that is complete now.
  void ready(int index);
  /// Waits for all buckets. A gradient that was not marked ready is averaged as it is. InvalidArgument without begin().
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
