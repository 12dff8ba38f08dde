// ucx_library.hpp: UCX's functions, found at run time; a context and a worker of UCX.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "link/ucx.hpp"

namespace tutti::link {

#define TUTTI_UCP_FUNCTIONS(function)                                                                                 \
  function(ucp_config_read) function(ucp_config_modify) function(ucp_config_release) function(ucp_get_version_string) \
      function(ucp_init_version) function(ucp_cleanup) function(ucp_context_print_info) function(ucp_worker_create)   \
          function(ucp_worker_destroy) function(ucp_worker_query) function(ucp_worker_get_address)                    \
              function(ucp_worker_release_address) function(ucp_worker_progress)                                      \
                  function(ucp_worker_set_am_recv_handler) function(ucp_ep_create) function(ucp_ep_close_nbx)         \
                      function(ucp_am_send_nbx) function(ucp_request_check_status) function(ucp_request_free)         \
                          function(ucs_status_string)

// Under UCX's own names. Never closed: UCX does not survive that.
struct Ucx {
#define TUTTI_DECLARE(name) decltype(&::name) name = nullptr;
  TUTTI_UCP_FUNCTIONS(TUTTI_DECLARE)
#undef TUTTI_DECLARE
  std::string file{};
};

// Error that says why it cannot be opened.
const Ucx& open_ucx_library();

// Error with UCX's words for the status, unless all is well.
void check(const Ucx& ucx, ucs_status_t status, std::string_view what);

struct DestroyUcx {
  const Ucx* ucx = nullptr;
  void operator()(ucp_context* context) const { ucx->ucp_cleanup(context); }
  void operator()(ucp_worker* worker) const { ucx->ucp_worker_destroy(worker); }
};
using UcxContextHandle = std::unique_ptr<ucp_context, DestroyUcx>;
using UcxWorkerHandle = std::unique_ptr<ucp_worker, DestroyUcx>;

class OpenUcxWorker final : public UcxWorker {
 public:
  explicit OpenUcxWorker(const UcxOptions& options);
  [[nodiscard]] std::string address() const override;

  [[nodiscard]] const Ucx& ucx() const { return ucx_; }
  [[nodiscard]] ucp_worker* worker() const { return worker_.get(); }
  // "tcp/eth0": what UCX may use.
  [[nodiscard]] std::vector<std::string> transports() const;
  // In a forked child: UCX's threads and connections are the parent's.
  void abandon() {
    static_cast<void>(worker_.release());
    static_cast<void>(context_.release());
  }

 private:
  const Ucx& ucx_;
  UcxContextHandle context_;
  UcxWorkerHandle worker_;
};

}  // namespace tutti::link
