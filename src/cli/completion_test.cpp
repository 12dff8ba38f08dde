// completion_test.cpp: what the shells are told is what the programs know.
// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <CLI/CLI.hpp>

#include "cli/program.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Completion, KnowsEveryCommandAndItsOptions) {
  const CompletionProgram program = describe(*make_program());
  EXPECT_THAT(program.itself.words, testing::IsSupersetOf({"run", "doctor", "explain", "sim", "completion"}));
  for (const std::string& word : program.itself.words) EXPECT_NE(word, "bench-rank") << "hidden";
  const auto explain = std::find_if(program.commands.begin(), program.commands.end(),
                                    [](const CompletionCommand& command) { return command.name == "explain"; });
  ASSERT_NE(explain, program.commands.end());
  EXPECT_THAT(explain->words, testing::Contains("all_reduce"));
  const auto algorithm =
      std::find_if(explain->options.begin(), explain->options.end(),
                   [](const CompletionOption& option) { return option.names.back() == "--algorithm"; });
  ASSERT_NE(algorithm, explain->options.end());
  EXPECT_TRUE(algorithm->takes_value);
  EXPECT_THAT(algorithm->values, testing::Contains("ring"));
}

TEST(Completion, ReadsAHelpPage) {
  const CompletionCommand command = describe_help("x",
                                                  "Usage: x [OPTIONS]\n\nOptions:\n"
                                                  "  -h,--help                 Print this\n"
                                                  "  -n,--ranks N              How many\n"
                                                  "  --a-name-that-is-too-long VALUE\n"
                                                  "                            Below\n"
                                                  "Examples:\n  x --not-an-option\n");
  ASSERT_EQ(command.options.size(), 3u);
  EXPECT_THAT(command.options[0].names, ElementsAre("-h", "--help"));
  EXPECT_FALSE(command.options[0].takes_value);
  EXPECT_TRUE(command.options[1].takes_value);
  EXPECT_EQ(command.options[1].description, "How many");
  EXPECT_TRUE(command.options[2].takes_value);
}

TEST(Completion, ScriptsNameProgramsCommandsAndQuoteDescriptions) {
  const CompletionProgram program{
      .itself = {.name = "prog", .words = {"go"}},
      .commands = {
          {.name = "go",
           .description = "It's [a] test: go",
           .options = {{.names = {"-f", "--far"}, .description = "far", .takes_value = true, .values = {"a", "b"}}}}}};
  EXPECT_THAT(completion_script(Shell::bash, {program}), HasSubstr("-f|--far) COMPREPLY=($(compgen -W 'a b'"));
  EXPECT_THAT(completion_script(Shell::zsh, {program}), HasSubstr(R"('go:It'\''s \[a\] test\: go')"));
  EXPECT_THAT(completion_script(Shell::fish, {program}),
              HasSubstr("complete -c prog -n '__fish_seen_subcommand_from go' -s f -l far -x -a 'a b' -d 'far'"));
}

}  // namespace
}  // namespace tutti::cli
