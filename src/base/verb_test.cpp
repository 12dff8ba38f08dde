// verb_test.cpp: what each verb is, against sets that are written out.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/verb.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <tutti/error.hpp>

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using enum Verb;
using Verbs = std::set<Verb>;

Verbs verbs_that(bool (*question)(Verb)) {
  Verbs found;
  for (int i = 0; i < verb_count; ++i) {
    if (question(static_cast<Verb>(i))) found.insert(static_cast<Verb>(i));
  }
  return found;
}

TEST(VerbTable, every_verb_has_a_name_that_leads_back_to_it) {
  for (int i = 0; i < verb_count; ++i) EXPECT_EQ(verb_from_name(name_of(static_cast<Verb>(i))), static_cast<Verb>(i));
  EXPECT_EQ(name_of(Verb::exscan), "exscan");
}

TEST(VerbTable, a_number_from_elsewhere_that_is_no_verb_has_a_name_too) {
  EXPECT_EQ(name_of(static_cast<Verb>(verb_count)), "unknown verb");
  EXPECT_EQ(name_of(static_cast<Verb>(255)), "unknown verb");
}

TEST(VerbTable, an_unknown_name_is_answered_with_the_list) {
  EXPECT_THAT([] { (void)verb_from_name("allreduce"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the verbs are all_reduce, reduce, broadcast")));
}

TEST(VerbTable, says_which_verbs_have_a_root_and_on_which_side) {
  EXPECT_EQ(verbs_that(has_root), (Verbs{reduce, broadcast, gather, scatter}));
  EXPECT_EQ(verbs_that(root_gives), (Verbs{broadcast, scatter}));
  EXPECT_EQ(verbs_that(root_gets), (Verbs{reduce, gather}));
}

TEST(VerbTable, says_which_verbs_reduce) {
  EXPECT_EQ(verbs_that(reduces), (Verbs{all_reduce, reduce, reduce_scatter, scan, exscan}));
  EXPECT_EQ(verbs_that(is_prefix), (Verbs{scan, exscan}));
}

TEST(VerbTable, says_which_verbs_have_blocks_and_where) {
  EXPECT_EQ(verbs_that(joins), (Verbs{all_gather, gather}));
  EXPECT_EQ(verbs_that(splits), (Verbs{reduce_scatter, scatter}));
  EXPECT_EQ(verbs_that(takes_blocks), (Verbs{reduce_scatter, scatter, all_to_all}));
  EXPECT_EQ(verbs_that(gives_blocks), (Verbs{all_gather, gather, all_to_all}));
  EXPECT_EQ(verbs_that(has_blocks), (Verbs{all_gather, gather, reduce_scatter, scatter, all_to_all}));
}

TEST(VerbTable, says_which_verbs_keep_the_shape_and_which_are_messages) {
  EXPECT_EQ(verbs_that(keeps_shape), (Verbs{all_reduce, reduce, broadcast, scan, exscan, permute}));
  EXPECT_EQ(verbs_that(is_message), (Verbs{send, recv}));
}

}  // namespace
}  // namespace tutti
