// replay_fuzzer.cpp: runs a fuzz target on its corpus and on seeded noise, without libFuzzer.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

std::vector<Input> corpus_in(const std::filesystem::path& folder) {
  std::vector<Input> corpus;
  if (!std::filesystem::is_directory(folder)) return corpus;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

// Half of the noise is a known input with some bytes changed: that passes the first checks of a parser.
Input noise(const std::vector<Input>& corpus, std::mt19937& random) {
  Input input;
  if (!corpus.empty() && random() % 2 == 0) input = corpus[random() % corpus.size()];
  if (input.empty()) input.resize(random() % 300);
  for (auto changes = input.size() / 8 + 1; changes > 0 && !input.empty(); --changes) {
    input[random() % input.size()] = static_cast<std::uint8_t>(random());
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int noise_inputs = 20'000;
  const std::vector<Input> corpus = corpus_in(argc > 1 ? argv[1] : "");
  for (const Input& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  std::mt19937 random(1);
  for (int i = 0; i < noise_inputs; ++i) {
    const Input input = noise(corpus, random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu inputs of the corpus, %d of noise\n", corpus.size(), noise_inputs);
}
