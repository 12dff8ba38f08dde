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

TEST(DType, a_struct_is_known_by_its_size) {
  std::set<int> numbers;
  for (std::size_t bytes = 1; bytes <= max_struct_bytes + 8; ++bytes) {
    EXPECT_EQ(has_struct_of(bytes), bytes <= 128 || (bytes % 8 == 0 && bytes <= max_struct_bytes)) << bytes;
    if (!has_struct_of(bytes)) continue;
    EXPECT_EQ(size_of(struct_of(bytes)), bytes);
    EXPECT_TRUE(is_struct(struct_of(bytes)) && is_dtype(struct_of(bytes)));
    numbers.insert(static_cast<int>(struct_of(bytes)));
  }
  EXPECT_EQ(*numbers.begin(), first_struct);
  EXPECT_EQ(*numbers.rbegin(), 255);
  EXPECT_EQ(name_of(struct_of(16)), "struct of 16 bytes");
  EXPECT_FALSE(is_dtype(static_cast<DType>(dtype_count)));
}

TEST(TimeLimit, takes_any_duration_and_the_longest_are_cut) {
  using namespace std::chrono_literals;
  EXPECT_EQ(Duration(TimeLimit(0.5s)), 500ms);
  EXPECT_EQ(Duration(TimeLimit(2min)), 120s);
  EXPECT_EQ(Duration(TimeLimit(std::chrono::hours::max())), Duration::max());
  EXPECT_EQ(Duration(TimeLimit(std::chrono::duration<double>(1e300))), Duration::max());
  EXPECT_EQ(Duration(TimeLimit(-1ns)), -1ns);
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

TEST(DType, an_unknown_number_can_still_be_printed) { EXPECT_EQ(name_of(static_cast<DType>(20)), "unknown dtype"); }

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
