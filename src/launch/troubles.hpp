// troubles.hpp: sentences from the store's thread for the thread that supervises.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"

namespace tutti::launch {

// Each sentence once, and not too many of them.
class Troubles {
 public:
  // On any thread.
  void add(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    if (told_.size() >= told_max || std::ranges::find(told_, sentence) != told_.end()) return;
    told_.push_back(sentence);
    new_.push_back(sentence);
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t bytes = write(wake_.get(), &one, sizeof(one));
  }

  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t bytes = read(wake_.get(), &count, sizeof(count));
    return std::exchange(new_, {});
  }

  // Readable when there is something to take.
  [[nodiscard]] int fd() const { return wake_.get(); }

 private:
  static constexpr std::size_t told_max = 8;
  UniqueFd wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex_;
  std::vector<std::string> told_, new_;
};

}  // namespace tutti::launch
