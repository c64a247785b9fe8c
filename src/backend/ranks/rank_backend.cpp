#include "backend/ranks/rank_backend.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"

namespace candor::backend {
namespace {

RankOptions with_ranks_here(RankOptions options) {
  if (!options.here.empty()) return options;
  for (int32_t rank = 0; rank < options.size; ++rank) options.here.push_back(rank);
  return options;
}

}  // namespace

// On rank 0: the pages of this rank, and the number by which the others know theirs.
class RankBackend::Store final : public KvStore {
 public:
  Store(RankBackend& backend, std::unique_ptr<KvStore> inner, const KvLayout& layout, int32_t number)
      : backend_(backend), inner_(std::move(inner)), layout_(layout), number_(number) {}
  ~Store() override { backend_.drop_kv(number_); }
  const KvLayout& layout() const override { return layout_; }
  int32_t n_blocks() const override { return inner_->n_blocks(); }
  int32_t n_states() const override { return inner_->n_states(); }
  size_t n_bytes() const override {
    const auto blocks = static_cast<size_t>(backend_.kv_block_bytes(layout_)) * static_cast<size_t>(n_blocks());
    const size_t states = static_cast<size_t>(state_slot_bytes(layout_.state)) * static_cast<size_t>(n_states());
    return blocks + states * backend_.options_.here.size();
  }
  void copy_block(BlockId src, BlockId dst, int32_t n_tokens) override {
    backend_.copy_block(number_, src, dst, n_tokens);
    inner_->copy_block(src, dst, n_tokens);
  }
  KvStore& inner() { return *inner_; }
  int32_t number() const { return number_; }

 private:
  RankBackend& backend_;
  std::unique_ptr<KvStore> inner_;
  KvLayout layout_;
  int32_t number_;
};

RankBackend::RankBackend(std::unique_ptr<Backend> inner, RankOptions options)
    : options_(with_ranks_here(std::move(options))),
      inner_(std::move(inner)),
      upload_(*inner_, options_.rank, options_.size, options_.here),
      ops_(*inner_, *options_.table, options_.rank, options_.size),
      info_(inner_->info()) {
  info_.n_ranks = options_.size;
  info_.n_ranks_here = static_cast<int32_t>(options_.here.size());
  // Each rank has a device like this one.
  info_.device_bytes *= options_.here.size();
  info_.free_bytes *= options_.here.size();
  info_.n_threads = options_.n_threads > 0 ? options_.n_threads : info_.n_threads * options_.size;
  info_.description =
      std::to_string(options_.size) + (options_.size == 1 ? " rank, " : " ranks, each ") + info_.description;
}

RankBackend::~RankBackend() {
  stores_.clear();
  if (!is_first() || group_.comm == nullptr || !health()) return;
  OrderWriter(order_, Order::kEnd);
  static_cast<void>(group_.comm->broadcast(order_));
}

Result<void> RankBackend::meet() {
  if (group_.comm != nullptr) return {};
  CANDOR_ASSIGN(group_, options_.gather_group());
  ops_.use(*group_.comm);
  return {};
}

Result<void> RankBackend::tell() {
  CANDOR_TRY(meet());
  return group_.comm->broadcast(order_);
}

Result<void> RankBackend::health() const {
  return group_.comm == nullptr ? Result<void>{} : group_.comm->health();
}

void RankBackend::say_failed(const Error& why) {
  if (group_.comm != nullptr && health()) group_.comm->say_failed(why);
}

RankTraffic RankBackend::rank_traffic() const {
  return {ops_.n_exchanges(), group_.comm == nullptr ? 0 : group_.comm->traffic().bytes};
}

Result<std::unique_ptr<Weight>> RankBackend::upload(const TensorView& tensor, WeightRole role) {
  return upload_split(tensor, role, {});
}

Result<std::unique_ptr<Weight>> RankBackend::upload_split(const TensorView& tensor, WeightRole role,
                                                          const WeightSplit& split) {
  CANDOR_TRY(meet());
  CANDOR_TRY(health());
  CANDOR_ASSIGN(std::unique_ptr<Weight> weight, upload_.upload(*inner_, tensor, role, split));
  return weight;
}

Result<uint64_t> RankBackend::upload_bytes(const TensorView& tensor, WeightRole role) const {
  return upload_.n_bytes(tensor, role, {});
}

Result<uint64_t> RankBackend::upload_split_bytes(const TensorView& tensor, WeightRole role,
                                                 const WeightSplit& split) const {
  return upload_.n_bytes(tensor, role, split);
}

uint64_t RankBackend::arena_bytes(const ArenaLayout& layout) const {
  return inner_->arena_bytes(layout) * options_.here.size();
}

int64_t RankBackend::kv_block_bytes(const KvLayout& layout) const {
  int64_t n_bytes = 0;
  for (const int32_t rank : options_.here) n_bytes += inner_->kv_block_bytes(own_layout(layout, rank));
  return n_bytes;
}

// Each rank asks at the same place, with the hash of what it read.
Result<int32_t> RankBackend::add_model(uint64_t content_hash) {
  CANDOR_TRY(meet());
  Bytes first(sizeof(content_hash));
  std::memcpy(first.data(), &content_hash, sizeof(content_hash));
  CANDOR_TRY(group_.comm->broadcast(first));
  const auto expected = OrderReader(first).take<uint64_t>();
  if (expected == content_hash) return n_models_++;
  return fail(ErrorKind::kInvalidInput,
              "the model's file here has another content than rank 0's: give all ranks the same file");
}

// Where there are fewer K/V heads than ranks, each keeps one. A key that all heads share is kept by all.
KvLayout RankBackend::own_layout(const KvLayout& layout, int32_t rank) const {
  if (!layout.has_values()) return layout;
  const auto part_of = [&](int32_t n_kv_heads) {
    if (n_kv_heads < options_.size) return 1;
    return share_heads({n_kv_heads, n_kv_heads}, options_.size)[static_cast<size_t>(rank)].n_kv_heads;
  };
  KvLayout own = layout;
  own.n_kv_heads = part_of(layout.n_kv_heads);
  for (KvHeads& heads : own.heads) heads.n_kv_heads = part_of(heads.n_kv_heads);
  return own;
}

Result<std::unique_ptr<KvStore>> RankBackend::make_kv(const KvLayout& layout, KvSize size) {
  write_make_kv(order_, layout, size);
  CANDOR_TRY(tell());
  CANDOR_ASSIGN(auto inner, inner_->make_kv(own_layout(layout, 0), size));
  CANDOR_TRY(group_.comm->barrier());
  return std::make_unique<Store>(*this, std::move(inner), layout, n_stores_++);
}

void RankBackend::drop_kv(int32_t store) noexcept {
  if (!health()) return;
  OrderWriter(order_, Order::kDropKv).put(store);
  static_cast<void>(tell());
}

void RankBackend::copy_block(int32_t store, BlockId src, BlockId dst, int32_t n_tokens) {
  OrderWriter writer(order_, Order::kCopyBlock);
  for (const int32_t number : {store, src, dst, n_tokens}) writer.put(number);
  static_cast<void>(tell());
}

Result<void> RankBackend::reserve_arena(const ArenaLayout& layout) {
  write_arena(order_, layout);
  CANDOR_TRY(tell());
  CANDOR_TRY(inner_->reserve_arena(layout));
  ops_.reserve(layout.slot_cols.size());
  return group_.comm->barrier();
}

void RankBackend::begin_step(const StepBatch& batch, KvStore& kv) {
  KvStore* own = &kv;
  if (is_first()) {
    auto& store = static_cast<Store&>(kv);
    write_step(order_, pass_, store.number(), batch);
    static_cast<void>(tell());
    own = &store.inner();
  }
  ops_.begin(batch, pass_);
  inner_->begin_step(batch, *own);
}

StepTicket RankBackend::end_step() {
  return inner_->end_step();
}

Result<void> RankBackend::follow(const RunPass& run) {
  CANDOR_TRY(meet());
  while (true) {
    CANDOR_TRY(group_.comm->broadcast(order_));
    if (order_.empty()) return comm::lost_rank("rank 0 has left in the middle of a model");
    CANDOR_ASSIGN(const bool goes_on, obey(OrderReader(order_), run));
    if (!goes_on) return {};
  }
}

Result<void> RankBackend::make_own_kv(OrderReader& reader) {
  const KvLayout layout = read_layout(reader);
  const auto n_blocks = reader.take<int32_t>();
  const auto n_states = reader.take<int32_t>();
  CANDOR_ASSIGN(auto store, inner_->make_kv(own_layout(layout, options_.rank), {n_blocks, n_states}));
  stores_.push_back(std::move(store));
  return group_.comm->barrier();
}

Result<bool> RankBackend::obey(OrderReader reader, const RunPass& run) {
  switch (reader.take<Order>()) {
    case Order::kStep:
      read_step(reader, step_);
      run(step_.pass, step_.batch(), *stores_.at(static_cast<size_t>(step_.kv)));
      CANDOR_TRY(health());
      return true;
    case Order::kCopyBlock: {
      const auto store = reader.take<int32_t>();
      const auto src = reader.take<int32_t>();
      const auto dst = reader.take<int32_t>();
      stores_.at(static_cast<size_t>(store))->copy_block(src, dst, reader.take<int32_t>());
      return true;
    }
    case Order::kMakeKv:
      CANDOR_TRY(make_own_kv(reader));
      return true;
    case Order::kDropKv:
      stores_.at(static_cast<size_t>(reader.take<int32_t>())).reset();
      return true;
    case Order::kReserve: {
      const ArenaLayout layout = read_arena(reader);
      CANDOR_TRY(inner_->reserve_arena(layout));
      ops_.reserve(layout.slot_cols.size());
      CANDOR_TRY(group_.comm->barrier());
      return true;
    }
    case Order::kEnd:
      break;
  }
  return false;
}

}  // namespace candor::backend
