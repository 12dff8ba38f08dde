// board_backend.cpp: a small backend, by tutti/backend.hpp alone.
// SPDX-License-Identifier: Apache-2.0
#include "board_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tutti::contract {

void Board::join(Transport& transport) {
  const std::lock_guard guard(mutex_);
  transports_.push_back(&transport);
}

void Board::leave(Transport& transport) {
  const std::lock_guard guard(mutex_);
  transports_.erase(std::ranges::find(transports_, &transport));
}

void Board::post(const Key& key, const GroupFacts& facts, const Signature& signature, std::vector<std::byte> input) {
  const std::lock_guard guard(mutex_);
  BoardCall& call = calls_[key];
  const auto size = static_cast<std::size_t>(facts.size), rank = static_cast<std::size_t>(facts.rank);
  call.inputs.resize(size);
  call.signatures.resize(size);
  call.posted.resize(size);
  call.inputs[rank] = std::move(input);
  call.signatures[rank] = signature;
  call.posted[rank] = true;
  ++call.posted_count;
  for (Transport* transport : transports_) transport->wake();
}

const BoardCall* Board::find(const Key& key) {
  const std::lock_guard guard(mutex_);
  const BoardCall& call = calls_[key];
  return call.posted_count == static_cast<int>(call.posted.size()) ? &call : nullptr;
}

void Board::leave(const Key& key, int size) {
  const std::lock_guard guard(mutex_);
  if (++calls_[key].left_count == size) calls_.erase(key);
}

namespace {

/// Calls `visit` with the address of each element, in row-major order. An array may have any strides, on any rank: a backend
/// cannot refuse it for them, because that has to be the same on all ranks.
template <class Visit>
void for_each_element(const View& view, std::byte* data, Visit visit) {
  const auto element = static_cast<std::int64_t>(size_of(view.dtype()));
  std::vector<std::int64_t> index(view.shape().size(), 0);
  for (std::int64_t i = 0; i < view.count(); ++i) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * view.strides()[axis];
    visit(data + offset * element);
    for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == view.shape()[axis];) index[axis] = 0;
  }
}

std::vector<std::byte> packed(const View& view, const std::byte* data) {
  const std::size_t element = size_of(view.dtype());
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(view.bytes()));
  for_each_element(view, const_cast<std::byte*>(data),
                   [&](const std::byte* at) { bytes.insert(bytes.end(), at, at + element); });
  return bytes;
}

void unpack(const std::vector<std::byte>& bytes, const View& view, std::byte* data) {
  const std::size_t element = size_of(view.dtype());
  const std::byte* from = bytes.data();
  for_each_element(view, data, [&](std::byte* to) {
    std::memcpy(to, from, element);
    from += element;
  });
}

template <class T>
void add(std::vector<std::byte>& sum, const std::vector<std::byte>& next) {
  for (std::size_t at = 0; at < sum.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, sum.data() + at, sizeof a);
    std::memcpy(&b, next.data() + at, sizeof b);
    a = static_cast<T>(a + b);
    std::memcpy(sum.data() + at, &a, sizeof a);
  }
}

using Add = void (*)(std::vector<std::byte>&, const std::vector<std::byte>&);
Add adder_of(DType dtype) {
  switch (dtype) {
    case DType::int32: return add<std::int32_t>;
    case DType::int64: return add<std::int64_t>;
    case DType::float32: return add<float>;
    case DType::float64: return add<double>;
    default: return nullptr;
  }
}

// [prepared call]
class BoardPrepared final : public PreparedCall {
 public:
  BoardPrepared(Board& board, const GroupFacts& facts, const Request& request)
      : board_(board), facts_(facts), request_(request) {}
  ~BoardPrepared() override { cancel(); }

  bool start(const Buffers& buffers, const Signature& signature) override {
    buffers_ = buffers;
    signature_ = signature;
    key_ = {facts_.id, facts_.epoch, signature.sequence};
    const bool has_input = request_.input.present();
    board_.post(key_, facts_, signature, has_input ? packed(request_.input, buffers.input) : std::vector<std::byte>());
    is_under_way_ = true;
    ++board_.served;
    return poll();
  }

  bool poll() override {
    if (!is_under_way_) return true;
    const BoardCall* const call = board_.find(key_);
    if (call == nullptr) return false;
    for (int peer = 0; peer < facts_.size; ++peer) compare(*call, peer);
    write_output(*call);
    cancel();  // this rank is through with it
    return true;
  }

  void cancel() override {
    if (std::exchange(is_under_way_, false)) board_.leave(key_, facts_.size);
  }

  [[nodiscard]] Progress progress() const override {
    Progress progress{.how = "board", .step_count = 1};
    for (int rank = 0; rank < facts_.size; ++rank) {
      if (rank != facts_.rank) progress.waiting_for.push_back(rank);
    }
    return progress;
  }
  // [end]

 private:
  void compare(const BoardCall& call, int peer) const {
    const Signature& theirs = call.signatures[static_cast<std::size_t>(peer)];
    if (theirs != signature_) throw SignatureDiffers("the calls on the board differ", peer, theirs);
  }

  void write_output(const BoardCall& call) {
    if (request_.verb == Verb::barrier) return;
    std::vector<std::byte> result;
    if (request_.verb == Verb::broadcast) {
      result = call.inputs[static_cast<std::size_t>(request_.root)];
    } else if (request_.verb == Verb::all_gather) {
      for (const auto& input : call.inputs) result.insert(result.end(), input.begin(), input.end());
    } else {
      result = call.inputs[0];
      for (std::size_t rank = 1; rank < call.inputs.size(); ++rank)
        adder_of(request_.input.dtype())(result, call.inputs[rank]);
    }
    const View output = request_.output.present() ? request_.output : made_output();
    unpack(result, output, buffers_.output != nullptr ? buffers_.output : static_cast<std::byte*>(output.data()));
  }

  /// Where the caller wants the result by value.
  [[nodiscard]] View made_output() const {
    const auto own = request_.input.shape();
    std::vector<std::int64_t> shape(own.begin(), own.end());
    if (request_.verb == Verb::all_gather) shape[0] *= facts_.size;
    return (*buffers_.allocate)(request_.input.dtype(), shape, request_.kind);
  }

  Board& board_;
  const GroupFacts& facts_;
  Request request_;
  Buffers buffers_;
  Signature signature_{};
  Board::Key key_{};
  bool is_under_way_ = false;
};

// [backend]
class BoardBackend final : public Backend {
 public:
  BoardBackend(std::shared_ptr<Board> board, GroupFacts facts, Transport& transport)
      : board_(std::move(board)), facts_(std::move(facts)), transport_(transport) {
    board_->join(transport_);
  }
  ~BoardBackend() override { board_->leave(transport_); }

  [[nodiscard]] std::string_view name() const override { return "board"; }

  [[nodiscard]] std::optional<std::string> refuses(const Request& request) const override {
    if (request.sizes_follow) return "the board does not exchange sizes";
    switch (request.verb) {
      case Verb::barrier:
      case Verb::broadcast: return std::nullopt;
      case Verb::all_gather:
        if (request.axis == 0 && !request.stack && !request.uneven && request.input.axes() > 0) return std::nullopt;
        return "the board joins along the first axis only";
      case Verb::all_reduce:
        if (request.op == Op::sum && adder_of(request.input.dtype()) != nullptr) return std::nullopt;
        return "the board sums int32, int64, float32 and float64 only";
      default: return "the board does not serve this verb";
    }
  }

  std::unique_ptr<PreparedCall> prepare(const Request& request) override {
    return std::make_unique<BoardPrepared>(*board_, facts_, request);
  }
  [[nodiscard]] bool is_worth_spinning() const override { return true; }

 private:
  std::shared_ptr<Board> board_;
  GroupFacts facts_;
  Transport& transport_;
};
// [end]

}  // namespace

// [factory]
BackendFactory board_backend(std::shared_ptr<Board> board) {
  return [board = std::move(board)](const GroupFacts& facts, Transport& transport) -> std::unique_ptr<Backend> {
    if (facts.size == 1) return nullptr;  // groups of one may share an id: their ranks never agreed on one
    return std::make_unique<BoardBackend>(board, facts, transport);
  };
}
// [end]

}  // namespace tutti::contract
