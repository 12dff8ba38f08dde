// no_ucx.cpp: the link over UCX in a build without UCX's headers: says what is missing.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/error.hpp>

#include "link/ucx.hpp"

namespace tutti::link {
namespace {

constexpr const char* problem =
    "this build of Tutti has no link over UCX: ucp/api/ucp.h was not found; install UCX's headers (Debian: libucx-dev) "
    "and build again";

}  // namespace

UcxFindings find_ucx(const UcxOptions&) { return {.problem = problem}; }
std::unique_ptr<UcxWorker> open_ucx(const UcxOptions&) { throw Unsupported(problem); }
std::unique_ptr<Link> make_ucx_link(UcxSetup) { throw Unsupported(problem); }

}  // namespace tutti::link
