// printable_test.cpp: what reaches a terminal does not command it.
// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Printable, LeavesTextOfAnyLanguageAlone) {
  for (const char* text : {"", "plain ~", "größer, ελληνικά, 日本語, 😀", "\xc2\xa0"})
    EXPECT_EQ(printable_text(text), text);
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable_text("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable_text("line\r\nforged\t\x7f"), "line\\x0d\\x0aforged\\x09\\x7f");
  EXPECT_EQ(printable_text("csi \xc2\x9b"
                           "2J"),
            "csi \\xc2\\x9b2J");
  EXPECT_EQ(printable_text("turned \xe2\x80\xae"
                           "txt"),
            "turned \\xe2\\x80\\xaetxt");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable_text("\x9b"
                           "2J \xff \xc0\x9b \xe2\x82"),
            "\\x9b2J \\xff \\xc0\\x9b \\xe2\\x82");
  EXPECT_EQ(printable_text("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

TEST(Printable, KeepsTheControlCharactersAskedFor) { EXPECT_EQ(printable_text("a\tb\nc\x1b", "\t\n"), "a\tb\nc\\x1b"); }

}  // namespace
}  // namespace tutti
