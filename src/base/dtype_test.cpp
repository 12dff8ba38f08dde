// dtype_test.cpp: names of element types and reductions, and which go together.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/dtype.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include <tutti/clock.hpp>
#include <tutti/error.hpp>
#include <tutti/op.hpp>

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(DType, every_type_has_a_name_of_its_own_that_leads_back) {
  std::set<std::string_view> names;
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    names.insert(name_of(dtype));
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
  }
  EXPECT_EQ(names.size(), std::size_t(dtype_count));
}

TEST(DType, names_and_sizes_match_the_cpp_types) {
  EXPECT_EQ(name_of(dtype_of<bool>), "bool");
  EXPECT_EQ(name_of(dtype_of<long long>), "int64");
  EXPECT_EQ(name_of(dtype_of<const unsigned short>), "uint16");
  EXPECT_EQ(name_of(dtype_of<float>), "float32");
  EXPECT_EQ(name_of(dtype_of<std::complex<double>>), "complex128");
  EXPECT_EQ(name_of(dtype_of<float8_e5m2>), "float8_e5m2");
  EXPECT_EQ(size_of(dtype_of<std::complex<double>>), sizeof(std::complex<double>));
  EXPECT_EQ(size_of(dtype_of<bfloat16>), sizeof(bfloat16));
  EXPECT_EQ(size_of(dtype_of<float8_e4m3>), 1u);
}

TEST(DType, an_unknown_name_is_refused_with_the_names_there_are) {
  EXPECT_THAT([] { dtype_from_name("half"); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("half"), HasSubstr("float16, bfloat16"))));
}

TEST(DType, an_unknown_number_can_still_be_printed) { EXPECT_EQ(name_of(static_cast<DType>(200)), "unknown dtype"); }

TEST(Op, names_lead_back_and_premul_shows_its_factor) {
  for (const Op& op : {Op::sum, Op::mean, Op::product, Op::min, Op::max, Op::band, Op::bor, Op::bxor}) {
    EXPECT_EQ(op_from_name(name_of(op)), op);
  }
  EXPECT_EQ(name_of(Op::premul(0.5)), "premul(0.5)");
  EXPECT_THAT([] { op_from_name("avg"); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("avg"), HasSubstr("sum, mean"))));
}

TEST(Clock, goes_forward_and_saturates_deadlines) {
  const TimePoint now = steady_clock().now();
  EXPECT_LE(now, steady_clock().now());
  EXPECT_EQ(deadline_after(now, Duration::max()), TimePoint::max());
  EXPECT_EQ(deadline_after(now, std::chrono::seconds(1)) - now, std::chrono::seconds(1));
}

}  // namespace
}  // namespace tutti
