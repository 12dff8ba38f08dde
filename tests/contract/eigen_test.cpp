// eigen_test.cpp: matrices and vectors of Eigen are arrays.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include <tutti/tutti.hpp>

#include "world_param.hpp"

#if __has_include(<Eigen/Dense>)
#include <Eigen/Dense>

namespace tutti::contract {
namespace {

class Eigens : public InWorld {};

TEST_P(Eigens, MatricesVectorsAndBlocksAreReducedInPlace) {
  on_every_rank([](const Group& world) {
    Eigen::MatrixXd matrix = Eigen::MatrixXd::Ones(3, 4);
    Eigen::Matrix<float, 2, 3, Eigen::RowMajor> rows = Eigen::Matrix<float, 2, 3, Eigen::RowMajor>::Ones();
    Eigen::VectorXf vector = Eigen::VectorXf::Ones(5);
    world.all_reduce(matrix);
    world.all_reduce(rows);
    world.all_reduce(vector);
    EXPECT_EQ(matrix, Eigen::MatrixXd::Constant(3, 4, world.size()));
    EXPECT_EQ(rows.sum(), 6.0f * static_cast<float>(world.size()));
    EXPECT_EQ(vector.sum(), 5.0f * static_cast<float>(world.size()));
    auto corner = matrix.block(0, 0, 2, 2);
    world.all_reduce(corner, {.op = Op::product});
    EXPECT_EQ(matrix(1, 1), std::pow(world.size(), world.size()));
    EXPECT_EQ(matrix(2, 1), world.size());
  });
}

TEST_P(Eigens, TheAxisThatIsSlowerInMemoryComesFirst) {
  on_every_rank([](const Group& world) {
    Eigen::MatrixXd mine = Eigen::MatrixXd::Constant(3, 2, world.rank()), all(3, 2 * world.size());
    world.all_gather(mine, all);  // side by side: Eigen's columns are apart
    for (int rank = 0; rank < world.size(); ++rank) EXPECT_EQ(all(2, 2 * rank + 1), rank);
    EXPECT_TRUE(View(mine).is_contiguous());
    const Eigen::MatrixXd fixed = mine;
    EXPECT_TRUE(View(fixed).is_read_only());
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Eigens, testing::ValuesIn(worlds({2})), world_name);

}  // namespace
}  // namespace tutti::contract
#else
TEST(Eigens, are_not_here) {
  const char* reason = std::getenv("TUTTI_SKIP_EIGEN");
  GTEST_SKIP() << (reason != nullptr ? reason : "Eigen was not there when this was built");
}
#endif
