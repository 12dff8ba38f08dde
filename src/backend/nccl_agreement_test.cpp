// nccl_agreement_test.cpp: when the ranks of a group use NCCL.
// SPDX-License-Identifier: Apache-2.0
#include "backend/nccl_agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const nccl::Functions some_functions{};

cuda::Uuid gpu(unsigned char which) { return {{std::byte{which}}}; }

NcclRecord record_of(unsigned char which, std::string_view host_id = {}, int version = 22809) {
  return own_nccl_record({.functions = &some_functions, .version = version}, gpu(which), host_id);
}

std::string objection(const std::vector<NcclRecord>& records, bool is_asked = false) {
  return nccl_objection(records, is_asked).value_or("");
}

TEST(NcclAgreement, RanksWithAGpuEachUseIt) {
  EXPECT_EQ(objection({record_of(0), record_of(1), record_of(2)}), "");
  EXPECT_EQ(objection({record_of(0)}), "");
}

TEST(NcclAgreement, RanksThatShareAGpuUseItOnlyWhereTheyAskForItAndLookLikeSeveralHosts) {
  EXPECT_THAT(objection({record_of(0), record_of(1), record_of(0)}), HasSubstr("ranks 0 and 2 share a GPU"));
  EXPECT_THAT(objection({record_of(0), record_of(0)}, true), HasSubstr("NCCL_HOSTID"));
  const std::vector<NcclRecord> apart{record_of(0, "a"), record_of(0, "b")};
  EXPECT_EQ(objection(apart, true), "");
  EXPECT_THAT(objection(apart, false), HasSubstr("share a GPU"));
  EXPECT_THAT(objection({record_of(0, "a"), record_of(0, "a")}, true), HasSubstr("share a GPU"));
  EXPECT_THAT(objection({record_of(0, "a"), record_of(0)}, true), HasSubstr("share a GPU"));
}

TEST(NcclAgreement, ARankWithoutALibraryIsNamedWithItsReason) {
  const NcclRecord without = own_nccl_record({.problem = "NCCL is not there: no such file"}, gpu(1), "");
  EXPECT_THAT(objection({record_of(0), without}, true), AllOf(HasSubstr("rank 1"), HasSubstr("no such file")));
}

TEST(NcclAgreement, AReasonThatIsTooLongIsCut) {
  const NcclRecord without = own_nccl_record({.problem = std::string(1000, 'x')}, gpu(1), "");
  EXPECT_EQ(objection({without}).size(), std::string("rank 0: ").size() + without.problem.size() - 1);
}

TEST(NcclAgreement, RanksWithDifferentVersionsDoNotUseIt) {
  EXPECT_THAT(objection({record_of(0), record_of(1, "", 21805)}),
              AllOf(HasSubstr("rank 0 has NCCL 2.28.9"), HasSubstr("rank 1 NCCL 2.18.5")));
}

TEST(NcclAgreement, ACommunicatorIsUsedAgainWhereAllHaveIt) {
  std::vector<NcclRecord> records{record_of(0), record_of(1)};
  EXPECT_FALSE(have_communicator(records));
  records[0].communicator = records[1].communicator = 7;
  EXPECT_TRUE(have_communicator(records));
  records[1].communicator = 8;  // of another GPU
  EXPECT_FALSE(have_communicator(records));
  records[1].communicator = 0;  // it gave a call up
  EXPECT_FALSE(have_communicator(records));
}

}  // namespace
}  // namespace tutti
