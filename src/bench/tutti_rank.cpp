// tutti_rank.cpp: a rank of Tutti itself, through the public interface.
// SPDX-License-Identifier: Apache-2.0
#include "bench/tutti_rank.hpp"

#include <fmt/format.h>

#include <memory>

#include <tutti/tutti.hpp>

#include "bench/rank.hpp"

namespace tutti::bench {

namespace {

class TuttiLibrary final : public Library {
 public:
  explicit TuttiLibrary(Group world) : world_(std::move(world)) {
    const int size = world_.size();
    for (int rank = 0; rank < size; ++rank) ring_.emplace_back(rank, (rank + 1) % size);
  }

  [[nodiscard]] RankPosition position() const override { return {.rank = world_.rank(), .size = world_.size()}; }
  [[nodiscard]] std::string describe() const override { return fmt::format("backend {}", world_.backend()); }
  void prepare(const BenchCase&) override {}
  std::shared_ptr<void> allocate(std::int64_t bytes, Memory memory) override {
    if (memory == Memory::heap) return Library::allocate(bytes, memory);
    auto buffer = std::make_shared<Buffer<std::uint8_t>>(world_.empty<std::uint8_t>(static_cast<std::size_t>(bytes)));
    return {buffer, buffer->data()};
  }
  void barrier() override { world_.barrier(); }
  void call(const TimedCall& call) override;

 private:
  void exchange(Exchange how, const View& in, const View& out);
  void ping_pong(const View& in, const View& out);
  void window(const View& in, const View& out);

  Group world_;
  Pairs ring_{};
  std::vector<Work> works_{};
};

// As programs make them: most have vectors or spans of floats, which need no checks.
View view_of(void* data, DType dtype, const std::int64_t& count) {
  if (dtype == DType::float32) return std::span(static_cast<float*>(data), static_cast<std::size_t>(count));
  return View(data, dtype, std::span(&count, 1));
}

void TuttiLibrary::call(const TimedCall& call) {
  if (call.bench_case.verb == Verb::barrier) return world_.barrier();
  const View in = view_of(call.in, call.bench_case.dtype, call.counts.in);
  const bool in_place = call.out == call.in;
  const View out = in_place ? View() : view_of(call.out, call.bench_case.dtype, call.counts.out);
  switch (call.bench_case.verb) {
    case Verb::all_reduce: return in_place ? world_.all_reduce(in) : world_.all_reduce(in, out);
    case Verb::reduce:
      return in_place ? world_.reduce(in, {.root = call.root}) : world_.reduce(in, out, {.root = call.root});
    case Verb::broadcast: return world_.broadcast(in, {.root = call.root});
    case Verb::all_gather: return world_.all_gather(in, out);
    case Verb::gather: return world_.gather(in, out, {.root = call.root});
    case Verb::reduce_scatter: return world_.reduce_scatter(in, out);
    case Verb::scatter: return world_.scatter(in, out, {.root = call.root});
    case Verb::all_to_all: return world_.all_to_all(in, out);
    case Verb::scan: return in_place ? world_.scan(in) : world_.scan(in, out);
    case Verb::exscan: return in_place ? world_.exscan(in) : world_.exscan(in, out);
    case Verb::permute: return world_.permute(in, out, ring_);
    case Verb::send: return exchange(call.bench_case.exchange, in, out);
    case Verb::barrier:
    case Verb::recv: return;
  }
}

void TuttiLibrary::exchange(Exchange how, const View& in, const View& out) {
  const int size = world_.size(), next = (world_.rank() + 1) % size, before = (world_.rank() + size - 1) % size;
  switch (how) {
    case Exchange::ping_pong: return ping_pong(in, out);
    case Exchange::window: return window(in, out);
    case Exchange::sendrecv: world_.sendrecv(in, next, out, before); return;
  }
}

void TuttiLibrary::window(const View& in, const View& out) {
  const int size = world_.size(), next = (world_.rank() + 1) % size, before = (world_.rank() + size - 1) % size;
  const std::int64_t count = in.count() / window_messages;
  const auto step = static_cast<std::size_t>(count) * size_of(in.dtype());
  const auto part = [&](const View& whole, int i) {
    return view_of(static_cast<std::byte*>(whole.data()) + static_cast<std::size_t>(i) * step, whole.dtype(), count);
  };
  works_.clear();
  for (int i = 0; i < window_messages; ++i) works_.push_back(world_.irecv(part(out, i), before));
  for (int i = 0; i < window_messages; ++i) works_.push_back(world_.isend(part(in, i), next));
  wait_all(std::span(works_));
}

void TuttiLibrary::ping_pong(const View& in, const View& out) {
  const int peer = 1 - world_.rank();
  if (peer == 1) world_.send(in, peer);
  world_.recv(out, peer);
  if (peer == 0) world_.send(in, peer);
}

}  // namespace

void run_tutti_rank(const TuttiRankOptions& options) {
  TuttiLibrary library(tutti::init({.backend = options.backend, .init_method = options.meeting_point}));
  serve(library, options.socket_path, options.name);
}

}  // namespace tutti::bench
