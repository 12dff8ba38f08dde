// style_test.cpp: colour where it is wanted, and columns that line up.
// SPDX-License-Identifier: Apache-2.0
#include "cli/style.hpp"

#include <fcntl.h>

#include <gtest/gtest.h>

#include "base/unique_fd.hpp"
#include "cli/text_table.hpp"

namespace tutti::cli {
namespace {

TEST(Style, PaintsOnlyWithColour) {
  EXPECT_EQ(Style::plain().paint(Tone::red, "no"), "no");
  EXPECT_EQ(Style::coloured().paint(Tone::red, "no"), "\033[31mno\033[0m");
  EXPECT_EQ(Style::coloured().paint(Tone::plain, "no"), "no");
}

TEST(Style, AFileHasNoColourUnlessItIsForced) {
  const UniqueFd file(open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_FALSE(Style::for_output(Environment{{"TERM", "xterm"}}, file.get()).has_colour());
  EXPECT_TRUE(Style::for_output(Environment{{"FORCE_COLOR", "1"}}, file.get()).has_colour());
  EXPECT_FALSE(Style::for_output(Environment{{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}, file.get()).has_colour());
  EXPECT_TRUE(Style::for_output(Environment{{"FORCE_COLOR", "1"}, {"NO_COLOR", ""}}, file.get()).has_colour());
}

TEST(Style, WidthIsCountedInCharactersAndWithoutColours) {
  EXPECT_EQ(display_width("9.5 µs"), 6u);
  EXPECT_EQ(display_width("▶──│"), 4u);
  EXPECT_EQ(display_width(Style::coloured().paint(Tone::green, "ok")), 2u);
  EXPECT_EQ(pad("µs", 4), "µs  ");
  EXPECT_EQ(pad("µs", 4, Side::right), "  µs");
  EXPECT_EQ(pad("longer", 3), "longer");
}

TEST(TextTable, AlignsColumnsAndLeavesNoBlanksAtTheEnd) {
  TextTable table({{"name"}, {"time", Side::right}, {"note"}});
  table.add({"ring", "9.5 µs", ""});
  table.add({"double_tree", "12 ms", "late"});
  EXPECT_EQ(table.text(Style::plain(), "> "),
            "> name           time  note\n"
            "> ring         9.5 µs\n"
            "> double_tree   12 ms  late\n");
}

}  // namespace
}  // namespace tutti::cli
