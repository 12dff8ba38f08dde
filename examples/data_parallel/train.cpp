// train.cpp: data-parallel training in plain C++, the same as the Python programs beside it: tuttirun -n 2 ./train
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdio>

#include <tutti/tutti.hpp>

constexpr int samples = 100, inputs = 4, hidden = 8, steps = 30;
constexpr float rate = 0.5f;
constexpr int second = inputs * hidden,
              loss = second + hidden;  // where they begin; the weights of the first layer are at 0

int main() {
  tutti::Group world = tutti::init();
  std::array<float, loss> weights{};
  for (int i = 0; i < second; ++i) weights[i] = float(0.5 * std::cos(i));
  for (int i = 0; i < hidden; ++i) weights[second + i] = float(0.5 * std::sin(i + 1));

  for (int step = 0; step < steps; ++step) {
    std::array<float, loss + 1> sums{};  // the gradients, and then the loss, of this rank's samples
    for (int sample = world.rank(); sample < samples; sample += world.size()) {
      std::array<float, inputs> x{};
      for (int i = 0; i < inputs; ++i) x[i] = float(std::sin(0.1 * (sample + 1) * (i + 1)));
      std::array<float, hidden> h{};
      float error = -std::sin(2 * x[0] - x[3]);
      for (int j = 0; j < hidden; ++j) {
        for (int i = 0; i < inputs; ++i) h[j] += x[i] * weights[i * hidden + j];
        h[j] = std::tanh(h[j]);
        error += h[j] * weights[second + j];
      }
      for (int j = 0; j < hidden; ++j) {
        for (int i = 0; i < inputs; ++i)
          sums[i * hidden + j] += 2 * error * weights[second + j] * (1 - h[j] * h[j]) * x[i];
        sums[second + j] += 2 * error * h[j];
      }
      sums[loss] += error * error;
    }
    world.all_reduce(sums);  // now of all samples of all ranks
    for (int i = 0; i < loss; ++i) weights[i] -= rate * sums[i] / samples;
    if (world.rank() == 0) std::printf("step %2d loss %.6f\n", step, sums[loss] / samples);
  }
}
