// cuda_sharing.cpp: memory of a GPU that the processes of a host map.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda_sharing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include <tutti/error.hpp>

namespace tutti {
namespace {

using cuda::driver;

constexpr std::size_t mapped_max = 256, exported_max = 256;

template <class T>
T attribute_of(int attribute, cuda::Address address, T otherwise) {
  T value = otherwise;
  return driver().pointer_attribute(&value, attribute, address) == cuda::success ? value : otherwise;
}

}  // namespace

std::uint64_t CudaSharing::process() {
  static const std::uint64_t token = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
  }();
  return token;
}

CudaSharing::~CudaSharing() {
  if (device_ == nullptr) return;
  const cuda::Device::Current current(*device_);
  for (const Mapped& mapped : mapped_) close(mapped);
  if (mailbox_ != nullptr) static_cast<void>(driver().free(reinterpret_cast<cuda::Address>(mailbox_)));
}

void CudaSharing::close(const Mapped& mapped) const {
  if (mapped.process != process()) static_cast<void>(driver().ipc_close(mapped.address));
}

std::optional<GpuPlace> CudaSharing::place_of(const void* memory) {
  const auto address = reinterpret_cast<cuda::Address>(memory);
  GpuPlace place{.is_present = 1};
  place.buffer = attribute_of<unsigned long long>(cuda::attribute_buffer_id, address, 0);
  if (place.buffer == 0) return std::nullopt;
  const auto known = std::ranges::find(exported_, place.buffer, &Exported::buffer);
  if (known != exported_.end()) {
    place.base = known->base;
    place.offset = address - place.base;
    place.handle = known->handle;
    return place;
  }
  place.base = attribute_of<cuda::Address>(cuda::attribute_range_start, address, 0);
  if (place.base == 0) return std::nullopt;
  place.offset = address - place.base;
  if (attribute_of<int>(cuda::attribute_is_ipc_capable, address, 1) == 0) return std::nullopt;
  if (driver().ipc_export(&place.handle, address) != cuda::success) return std::nullopt;
  if (exported_.size() >= exported_max) exported_.erase(exported_.begin());
  exported_.push_back({place.buffer, place.base, place.handle});
  return place;
}

std::byte* CudaSharing::map(std::uint64_t of_process, const GpuPlace& place) {
  if (place.is_present == 0) return nullptr;
  const auto at = [&](cuda::Address base) { return reinterpret_cast<std::byte*>(base + place.offset); };  // NOLINT
  if (of_process == process()) return at(place.base);
  const auto is_same = [&](const Mapped& one) { return one.process == of_process && one.base == place.base; };
  if (const auto found = std::ranges::find_if(mapped_, is_same); found != mapped_.end()) {
    if (found->buffer == place.buffer) return at(found->address);
    close(*found);  // its owner has freed it, and has other memory there now
    mapped_.erase(found);
  }
  if (mapped_.size() >= mapped_max) {
    close(mapped_.front());
    mapped_.erase(mapped_.begin());
  }
  cuda::Address address = 0;
  cuda::check(driver().ipc_open(&address, place.handle, cuda::ipc_lazy_peer_access),
              "the memory of another process cannot be mapped (TUTTI_CUDA_SHARING=off goes by way of the host): "
              "cuIpcOpenMemHandle");
  mapped_.push_back({of_process, place.base, place.buffer, address});
  return at(address);
}

cuda::Mailbox* CudaSharing::mailbox(cuda::Device& device) {
  if (mailbox_ != nullptr) return mailbox_;
  device_ = &device;
  cuda::Address address = 0;
  cuda::check(driver().allocate(&address, sizeof(cuda::Mailbox)), "cuMemAlloc");
  cuda::Stream const stream = device.take_stream();
  cuda::Event const event = device.take_event();
  cuda::check(driver().fill(address, 0, sizeof(cuda::Mailbox), stream), "cuMemsetD8Async");
  cuda::check(driver().record(event, stream), "cuEventRecord");
  cuda::check(driver().synchronize(event), "cuEventSynchronize");
  device.give_back(event);
  device.give_back_stream(stream);
  return mailbox_ = reinterpret_cast<cuda::Mailbox*>(address);  // NOLINT: an address is what the driver gives
}

// `revoked` is written before `busy` is read. A kernel does it the other way round, so one of the two sees the other. A kernel is over
// soon, or was ended with its process: then `busy` stays, and the wait has an end.
void CudaSharing::revoke(std::uint64_t ticket) {
  if (mailbox_ == nullptr) return;
  using namespace std::chrono_literals;
  const auto until = std::chrono::steady_clock::now() + 1s;
  const auto mailbox = reinterpret_cast<cuda::Address>(mailbox_);
  cuda::Stream const stream = device_->take_stream();
  cuda::Event const event = device_->take_event();
  cuda::Mailbox copy{.revoked = ticket, .busy = 0};
  const auto finish = [&] {
    static_cast<void>(driver().record(event, stream));
    return driver().synchronize(event) == cuda::success;
  };
  const auto field = [](std::uint64_t& word) { return reinterpret_cast<cuda::Address>(&word); };
  bool works = driver().copy(mailbox + offsetof(cuda::Mailbox, revoked), field(copy.revoked), sizeof copy.revoked,
                             stream) == cuda::success &&
               finish();
  do {
    copy.busy = 0;
    works = works &&
            driver().copy(field(copy.busy), mailbox + offsetof(cuda::Mailbox, busy), sizeof copy.busy, stream) ==
                cuda::success &&
            finish();
    if (works && copy.busy != 0) std::this_thread::sleep_for(100us);
  } while (works && copy.busy != 0 && std::chrono::steady_clock::now() < until);
  device_->give_back(event);
  device_->give_back_stream(stream);
}

}  // namespace tutti
