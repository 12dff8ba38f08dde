// tutti.hpp: everything a program needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/argmin.hpp>
#include <tutti/await.hpp>
#include <tutti/buckets.hpp>
#include <tutti/connector.hpp>
#include <tutti/dtype.hpp>
#include <tutti/error.hpp>
#include <tutti/group.hpp>
#include <tutti/init.hpp>
#include <tutti/mesh.hpp>
#include <tutti/model_parallel.hpp>
#include <tutti/op.hpp>
#include <tutti/optimizer.hpp>
#include <tutti/shard.hpp>
#include <tutti/stats.hpp>
#include <tutti/verbs.hpp>
#include <tutti/view.hpp>
#include <tutti/work.hpp>
