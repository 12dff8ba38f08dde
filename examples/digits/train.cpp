// train.cpp: digits in C++, gradients by hand: python digits.py digits.bin && tuttirun -n 2 ./digits digits.bin
// SPDX-License-Identifier: Apache-2.0
//
//   digits FILE [--curve OUT] [--epochs N]      OUT: every step's loss and the accuracy, as JSON
#include <fmt/format.h>
#include <tutti/buckets.hpp>
#include <tutti/shard.hpp>
#include <tutti/tutti.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Floats = std::vector<float>;
using Clock = std::chrono::steady_clock;
constexpr std::size_t batch_size = 512;
constexpr float rate = 0.06f, momentum = 0.9f;
constexpr std::uint64_t seed = 7;
constexpr int warm_up = 5;  // steps that the figures leave out

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Samples {
  Floats pixels;
  std::vector<std::int32_t> labels;
};

struct Digits {
  std::size_t pixel_count = 0, hidden_count = 0, class_count = 0;
  Samples training, test;
  Floats weights[4];  // first layer, its bias, second layer, its bias; row by row, one row per input
};

template <class T>
std::vector<T> read(std::ifstream& file, std::size_t count) {
  std::vector<T> values(count);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(T)));
  if (!file) throw std::runtime_error("the file ends too early; write it again: python digits.py digits.bin");
  return values;
}

Samples read_samples(std::ifstream& file, std::size_t count, std::size_t pixel_count) {
  Floats pixels = read<float>(file, count * pixel_count);
  return {std::move(pixels), read<std::int32_t>(file, count)};
}

Digits read_digits(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("cannot open {}; write it: python digits.py {}", path, path));
  const auto head = read<std::int32_t>(file, 5);
  const auto number = [&](std::size_t i) { return static_cast<std::size_t>(head[i]); };
  Digits digits;
  digits.pixel_count = number(2), digits.hidden_count = number(3), digits.class_count = number(4);
  digits.training = read_samples(file, number(0), digits.pixel_count);
  digits.test = read_samples(file, number(1), digits.pixel_count);
  const std::size_t counts[] = {digits.pixel_count * digits.hidden_count, digits.hidden_count,
                                digits.hidden_count * digits.class_count, digits.class_count};
  for (std::size_t i = 0; i < 4; ++i) digits.weights[i] = read<float>(file, counts[i]);
  return digits;
}

/// y = x · w + b for one sample.
void linear(std::span<const float> x, const Floats& w, const Floats& b, Floats& y) {
  y = b;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) continue;  // every other pixel
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[i] * w[i * y.size() + j];
  }
}

class Network {
 public:
  explicit Network(Digits& digits) : digits_(digits) {}

  /// The class with the highest score; hidden and scores stay for backward.
  std::size_t forward(std::span<const float> x) {
    linear(x, digits_.weights[0], digits_.weights[1], hidden_);
    for (float& value : hidden_) value = std::tanh(value);
    linear(hidden_, digits_.weights[2], digits_.weights[3], scores_);
    return static_cast<std::size_t>(std::ranges::max_element(scores_) - scores_.begin());
  }

  /// Adds one sample's gradients, divided by `count`; returns its loss, likewise.
  float backward(std::span<const float> x, std::size_t label, float count, std::span<float>* gradients) {
    const float largest = *std::ranges::max_element(scores_);
    float sum = 0;
    for (const float score : scores_) sum += std::exp(score - largest);
    const float loss = std::log(sum) - (scores_[label] - largest);
    for (std::size_t j = 0; j < scores_.size(); ++j) {
      scores_[j] = (std::exp(scores_[j] - largest) / sum - (j == label ? 1.0f : 0.0f)) / count;
    }
    add(hidden_, scores_, gradients[2], gradients[3]);
    Floats back(hidden_.size());
    for (std::size_t i = 0; i < hidden_.size(); ++i) {
      const float* row = digits_.weights[2].data() + i * scores_.size();
      back[i] = std::inner_product(scores_.begin(), scores_.end(), row, 0.0f) * (1 - hidden_[i] * hidden_[i]);
    }
    add(x, back, gradients[0], gradients[1]);
    return loss / count;
  }

 private:
  static void add(std::span<const float> x, const Floats& slope, std::span<float> weight, std::span<float> bias) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 0) continue;
      for (std::size_t j = 0; j < slope.size(); ++j) weight[i * slope.size() + j] += x[i] * slope[j];
    }
    for (std::size_t j = 0; j < slope.size(); ++j) bias[j] += slope[j];
  }

  Digits& digits_;
  Floats hidden_, scores_;
};

class Training {
 public:
  Training(tutti::Group world, Digits digits)
      : world_(std::move(world)),
        digits_(std::move(digits)),
        buckets_(world_, {{.count = digits_.weights[0].size()},
                          {.count = digits_.weights[1].size()},
                          {.count = digits_.weights[2].size()},
                          {.count = digits_.weights[3].size()},
                          {.count = 1}}) {  // the loss travels with the gradients
    for (std::size_t i = 0; i < 4; ++i) velocity_[i].resize(digits_.weights[i].size());
  }

  /// One pass over the images; the mean loss of each step.
  std::vector<float> epoch(std::uint64_t number) {
    const auto count = static_cast<std::int64_t>(digits_.training.labels.size());
    const auto order = tutti::shuffled_indices(count, seed, number);
    std::vector<float> losses;
    for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
      const std::size_t length = std::min(batch_size, order.size() - begin);
      const tutti::Range own = tutti::shard_of(static_cast<std::int64_t>(length), world_.size(), world_.rank());
      losses.push_back(step(std::span(order).subspan(begin + std::size_t(own.begin), std::size_t(own.length))));
    }
    return losses;
  }

  double accuracy() {
    std::size_t right = 0;
    for (std::size_t i = 0; i < digits_.test.labels.size(); ++i) {
      right += network_.forward(pixels(digits_.test, i)) == std::size_t(digits_.test.labels[i]) ? 1 : 0;
    }
    return double(right) / double(digits_.test.labels.size());
  }

  /// Since the warm-up.
  [[nodiscard]] double elapsed_s() const { return seconds_since(begin_); }
  [[nodiscard]] double communication_percent() const { return 100 * communication_s_ / elapsed_s(); }
  [[nodiscard]] double waiting_percent() const { return 100 * waiting_s_ / elapsed_s(); }

 private:
  std::span<const float> pixels(const Samples& samples, std::size_t index) const {
    return std::span(samples.pixels).subspan(index * digits_.pixel_count, digits_.pixel_count);
  }

  float step(std::span<const std::int64_t> samples) {
    buckets_.begin(double(samples.size()));
    std::span<float> gradients[5];
    for (int i = 0; i < 5; ++i) {
      gradients[i] = buckets_.gradient<float>(i);
      std::ranges::fill(gradients[i], 0.0f);
    }
    for (const std::int64_t sample : samples) {
      const auto index = static_cast<std::size_t>(sample);
      const auto x = pixels(digits_.training, index);
      network_.forward(x);
      gradients[4][0] +=
          network_.backward(x, std::size_t(digits_.training.labels[index]), float(samples.size()), gradients);
    }
    const auto came = Clock::now();
    world_.barrier();  // tells waiting from communication
    const auto begin = Clock::now();
    waiting_s_ += seconds_since(came);
    for (int i = 0; i < 5; ++i) buckets_.ready(i);
    buckets_.finish();
    communication_s_ += seconds_since(begin);
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < velocity_[i].size(); ++j) {
        velocity_[i][j] = momentum * velocity_[i][j] + gradients[i][j];
        digits_.weights[i][j] -= rate * velocity_[i][j];
      }
    }
    if (++steps_ == warm_up) {
      begin_ = Clock::now();
      communication_s_ = waiting_s_ = 0;
    }
    return gradients[4][0];
  }

  tutti::Group world_;
  Digits digits_;
  Network network_{digits_};
  tutti::Buckets buckets_;
  Floats velocity_[4];
  int steps_ = 0;
  Clock::time_point begin_ = Clock::now();
  double communication_s_ = 0, waiting_s_ = 0;
};

std::string bar(double done) {
  std::string text;
  for (int place = 0; place < 20; ++place) text += place < std::lround(20 * done) ? "█" : "·";
  return text;
}

struct Options {
  std::string file, curve;
  int epochs = 12;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--curve" && i + 1 < argc) options.curve = argv[++i];
    else if (word == "--epochs" && i + 1 < argc) options.epochs = std::stoi(argv[++i]);
    else options.file = word;
  }
  if (options.file.empty()) throw std::runtime_error("usage: digits FILE [--curve OUT] [--epochs N]");
  return options;
}

void train(const Options& options) {
  tutti::Group world = tutti::init();
  Training training(world, read_digits(options.file));
  std::vector<float> curve;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const std::vector<float> losses = training.epoch(static_cast<std::uint64_t>(epoch));
    curve.insert(curve.end(), losses.begin(), losses.end());
    if (world.rank() != 0) continue;
    fmt::print(
        "epoch {:2}/{} {} loss {:.4f}  accuracy {:5.2f} %  {:5.1f} s, {:4.1f} % in communication, {:4.1f} % waiting\n",
        epoch + 1, options.epochs, bar(double(epoch + 1) / options.epochs),
        std::accumulate(losses.begin(), losses.end(), 0.0) / double(losses.size()), 100 * training.accuracy(),
        training.elapsed_s(), training.communication_percent(), training.waiting_percent());
    std::fflush(stdout);
  }
  if (world.rank() == 0 && !options.curve.empty()) {
    std::ofstream(options.curve) << fmt::format(
        R"({{"losses": [{}], "accuracy": {}, "seconds": {}, "communication": {}, "waiting": {}}})",
        fmt::join(curve, ", "), training.accuracy(), training.elapsed_s(), training.communication_percent(),
        training.waiting_percent());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "digits: {}\n", error.what());
    return 1;
  }
}
