// line_splitter_test.cpp: however the bytes are cut, the lines are the same.
// SPDX-License-Identifier: Apache-2.0
#include "launch/line_splitter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tutti::launch {
namespace {

using testing::ElementsAre;
using Piece = LineSplitter::Piece;

struct Taken {
  std::string text;
  Piece piece;
  bool operator==(const Taken&) const = default;
};

class Split {
 public:
  explicit Split(std::size_t line_bytes_max = 1 << 20) : splitter_(line_bytes_max) {}
  Split& add(std::string_view bytes) {
    splitter_.add(bytes, take());
    return *this;
  }
  std::vector<Taken> finish() {
    splitter_.finish(take());
    return taken_;
  }
  std::string text() {
    std::string all;
    for (const Taken& one : finish()) all += one.text;
    return all;
  }

 private:
  LineSplitter::Take take() {
    return [this](std::string_view text, Piece piece) { taken_.push_back({std::string(text), piece}); };
  }
  LineSplitter splitter_;
  std::vector<Taken> taken_;
};

TEST(LineSplitter, PassesWholeLinesOnTogether) {
  EXPECT_THAT(Split().add("one\ntwo\n").finish(), ElementsAre(Taken{"one\ntwo\n", Piece::whole}));
}

TEST(LineSplitter, KeepsWhatHasNoNewlineYet) {
  EXPECT_THAT(Split().add("one\ntw").add("o").add("\nthree\n").finish(),
              ElementsAre(Taken{"one\n", Piece::whole}, Taken{"two\n", Piece::whole}, Taken{"three\n", Piece::whole}));
}

TEST(LineSplitter, GivesTheLastLineItsNewline) {
  EXPECT_THAT(Split().add("end").finish(), ElementsAre(Taken{"end\n", Piece::whole}));
  EXPECT_THAT(Split().add("end\n").finish(), ElementsAre(Taken{"end\n", Piece::whole}));
  EXPECT_THAT(Split().finish(), ElementsAre());
}

TEST(LineSplitter, PassesALineThatIsTooLongOnInPieces) {
  EXPECT_THAT(Split(4).add("abcdefghij\nk\n").finish(), ElementsAre(Taken{"abcdefghij\nk\n", Piece::whole}))
      << "what has come whole needs no memory";
  EXPECT_THAT(Split(4).add("abcde").add("fghij\nk\n").finish(),
              ElementsAre(Taken{"abcd", Piece::begun}, Taken{"efgh", Piece::continued}, Taken{"ij\n", Piece::ended},
                          Taken{"k\n", Piece::whole}));
  EXPECT_THAT(Split(4).add("abcde").finish(), ElementsAre(Taken{"abcd", Piece::begun}, Taken{"e\n", Piece::ended}));
}

TEST(LineSplitter, LosesNothingHoweverTheBytesAreCut) {
  const std::string text = "\n\na\nbb\nccc\ndddddddddddd\n\ne\n";
  for (std::size_t cut = 1; cut <= text.size(); ++cut) {
    for (const std::size_t line_bytes_max : {1, 3, 100}) {
      Split split(line_bytes_max);
      for (std::size_t at = 0; at < text.size(); at += cut) split.add(std::string_view(text).substr(at, cut));
      EXPECT_EQ(split.text(), text) << "cut every " << cut << ", lines up to " << line_bytes_max;
    }
  }
}

}  // namespace
}  // namespace tutti::launch
