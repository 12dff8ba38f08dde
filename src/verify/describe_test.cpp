// describe_test.cpp: docs/algorithms.md says what the code does.
// SPDX-License-Identifier: Apache-2.0
#include "verify/describe.hpp"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "plan/catalog.hpp"

namespace tutti {
namespace {

std::string page() {
  std::ifstream file(std::string(TUTTI_SOURCE_DIR) + "/docs/algorithms.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What stands between the comment that begins with `begin` and the next end mark.
std::string block(const std::string& text, const std::string& begin) {
  const std::size_t comment = text.find("<!-- " + begin);
  if (comment == std::string::npos) return "no such block";
  const std::size_t first = text.find('\n', comment) + 1;
  return text.substr(first, text.find("<!-- end -->", first) - first);
}

TEST(Documentation, TheSelectionTableIsWhatTheBuiltInTableSelects) {
  EXPECT_EQ(block(page(), "selection table"), selection_table({})) << "copy this into docs/algorithms.md";
}

TEST(Documentation, TheCostTableIsWhatTheClosedFormsSay) {
  EXPECT_EQ(block(page(), "cost table"), cost_table()) << "copy this into docs/algorithms.md";
}

TEST(Documentation, EveryAlgorithmIsExplained) {
  const std::string text = page();
  for (const CatalogRow& row : catalog()) {
    EXPECT_NE(text.find("| `" + std::string(name_of(row.algorithm)) + "` |"), std::string::npos)
        << name_of(row.algorithm);
  }
}

}  // namespace
}  // namespace tutti
