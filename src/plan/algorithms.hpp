// algorithms.hpp: every algorithm, one function each: it writes one rank's steps for the builder's spec.
// SPDX-License-Identifier: Apache-2.0
//
// In the cost line above each algorithm, p is the number of ranks and n the array (for the verbs with blocks: all blocks
// together). Steps are rounds of messages one after the other; bytes are what the busiest rank sends.
// Whether a call is in place is a fact about one rank: it may change where things land, never a message or the order of a
// reduction.
#pragma once

#include "plan/builder.hpp"
#include "plan/layout.hpp"

namespace tutti::algorithm {

void direct_all_gather(PlanBuilder& b);
void direct_gather(PlanBuilder& b);
void direct_scatter(PlanBuilder& b);
void direct_all_to_all(PlanBuilder& b);
void direct_permute(PlanBuilder& b);

void ring_all_reduce(PlanBuilder& b);
void ring_reduce_scatter(PlanBuilder& b);
void ring_all_gather(PlanBuilder& b);

void recursive_doubling_all_reduce(PlanBuilder& b);
void recursive_doubling_all_gather(PlanBuilder& b);
void recursive_doubling_scan(PlanBuilder& b);
void recursive_doubling_exscan(PlanBuilder& b);

void halving_doubling_all_reduce(PlanBuilder& b);
void halving_doubling_reduce_scatter(PlanBuilder& b);

void circulant_all_reduce(PlanBuilder& b);
void circulant_reduce_scatter(PlanBuilder& b);
void circulant_all_gather(PlanBuilder& b);

void scatter_gather_broadcast(PlanBuilder& b);
void scatter_gather_reduce(PlanBuilder& b);

void double_tree_broadcast(PlanBuilder& b);
void double_tree_reduce(PlanBuilder& b);
void double_tree_all_reduce(PlanBuilder& b);

void binomial_broadcast(PlanBuilder& b);
void binomial_reduce(PlanBuilder& b);
void binomial_gather(PlanBuilder& b);
void binomial_scatter(PlanBuilder& b);

void pairwise_all_to_all(PlanBuilder& b);
void pairwise_reduce_scatter(PlanBuilder& b);

void bruck_all_to_all(PlanBuilder& b);

void chain_broadcast(PlanBuilder& b);
void chain_reduce(PlanBuilder& b);
void chain_scan(PlanBuilder& b);
void chain_exscan(PlanBuilder& b);

void dissemination_barrier(PlanBuilder& b);

void hierarchical_all_reduce(PlanBuilder& b);
void hierarchical_reduce(PlanBuilder& b);
void hierarchical_broadcast(PlanBuilder& b);
void hierarchical_all_gather(PlanBuilder& b);
void hierarchical_reduce_scatter(PlanBuilder& b);
void hierarchical_gather(PlanBuilder& b);
void hierarchical_scatter(PlanBuilder& b);
void hierarchical_barrier(PlanBuilder& b);

}  // namespace tutti::algorithm
