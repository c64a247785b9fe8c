#include "engine/disk/disk_tier.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "backend/op_specs.h"

namespace candor::engine {
namespace {

constexpr uint64_t kFirstBytesPerSecond = 1'000'000'000;  // until a read was timed
constexpr size_t kBytesBesideOthers = size_t{8} << 20;    // copied in a step: about a millisecond
constexpr size_t kSavedAtOnce = size_t{16} << 20;
constexpr size_t kSavedBesideOthers = size_t{2} << 20;
constexpr int32_t kNewShare = 8;  // of memory's blocks: so many new ones begin a round of saving
constexpr std::chrono::seconds kMostAtTheEnd{10};

// Of one block, read in a step of many.
int64_t block_ns(const sched::CostModel& costs) {
  if (costs.points.empty()) return 0;
  constexpr int32_t kRows = 8 * backend::kBlockTokens;
  sched::StepWork work{.n_out_rows = 1};
  work.begin_sequence(0);
  work.add_rows(0, kRows);
  return costs.step_ns(work) * backend::kBlockTokens / kRows;
}

uint64_t memory_of_state(backend::KvStore& kv) {
  return kv.n_states() > 0 ? kv.state_memory(0).size() : 0;
}

}  // namespace

DiskTier::DiskTier(std::shared_ptr<prefix_store::Store> store, backend::KvStore& kv, const sched::CostModel& costs,
                   std::function<void()> wake)
    : store_(std::move(store)),
      kv_(kv),
      block_bytes_(store_ ? kv.block_memory(0).size() : 0),
      state_bytes_(store_ ? memory_of_state(kv) : 0),
      compute_ns_(block_ns(costs)) {
  if (block_bytes_ > 0) worker_ = std::make_unique<DiskWorker>(store_, std::move(wake));
}

// What is computed faster than it is read is not kept.
bool DiskTier::pays(size_t n_blocks) const {
  if (compute_ns_ == 0) return true;
  const DiskTimes times = worker_->times();
  const double bytes = static_cast<double>(n_blocks) * static_cast<double>(block_bytes_);
  const double ns_per_byte = times.n_read_bytes > 0
                                 ? static_cast<double>(times.read_ns) / static_cast<double>(times.n_read_bytes)
                                 : 1e9 / static_cast<double>(kFirstBytesPerSecond);
  return bytes * ns_per_byte < static_cast<double>(compute_ns_) * static_cast<double>(n_blocks);
}

// Behind the table's blocks, as far as the disk has them, and of recurrent layers up to the newest with a state.
std::vector<WantedBlock> DiskTier::find(const kv::PrefixKey& key, std::span<const TokenId> beginning,
                                        const kv::BlockTable& table) const {
  std::vector<WantedBlock> wanted;
  size_t n_usable = 0;
  kv::PrefixDigest parent = table.blocks.empty() ? kv::root_digest(key) : table.last_digest;
  constexpr size_t kTokens = backend::kBlockTokens;
  for (size_t begin = table.blocks.size() * kTokens; begin + kTokens <= beginning.size(); begin += kTokens) {
    const auto tokens = beginning.subspan(begin, kTokens);
    const kv::PrefixDigest digest = kv::next_digest(parent, tokens);
    const auto header = store_->find(digest);
    if (!header || header->block_bytes != block_bytes_) break;
    const bool has_state = header->state_bytes == state_bytes_;
    if (!has_state && header->state_bytes != 0) break;
    wanted.push_back({digest, parent, {tokens.begin(), tokens.end()}, block_bytes_, header->state_bytes});
    if (has_state) n_usable = wanted.size();
    parent = digest;
  }
  wanted.resize(n_usable);
  return wanted;
}

bool DiskTier::begin(RequestId request, const kv::PrefixKey& key, std::span<const TokenId> beginning,
                     kv::BlockManager& blocks) {
  if (!is_on() || beginning.size() < backend::kBlockTokens) return false;
  auto restore = std::make_unique<Restore>();
  restore->request = request;
  restore->key = key;
  blocks.match(key, beginning, restore->table);
  std::vector<WantedBlock> wanted = find(key, beginning, restore->table);
  if (wanted.empty() || !pays(wanted.size())) {
    blocks.release(restore->table);
    return false;
  }
  restore->reading = std::make_shared<Reading>(std::move(wanted));
  worker_->read(restore->reading);
  restores_.push_back(std::move(restore));
  return true;
}

// True where nothing more comes.
bool DiskTier::advance(Restore& restore, kv::BlockManager& blocks, bool beside_others) {
  size_t n_bytes = 0;
  std::vector<std::byte> payload;
  bool has_room = true;
  while (has_room && (!beside_others || n_bytes < kBytesBesideOthers) && restore.reading->take(payload)) {
    n_bytes += payload.size();
    has_room = bring(restore, payload, blocks);
  }
  if (n_bytes > 0) worker_->go_on();
  if (has_room && !restore.reading->is_over()) return false;
  restore.reading->stop();
  worker_->go_on();
  blocks.release(restore.table);
  n_restored_tokens_ += restore.n_tokens;
  return true;
}

bool DiskTier::bring(Restore& restore, std::span<const std::byte> payload, kv::BlockManager& blocks) {
  const WantedBlock& wanted = restore.reading->wanted()[restore.next++];
  const auto adopted = blocks.adopt(restore.key, wanted.tokens, wanted.state_bytes > 0, restore.table);
  save_lost(blocks);
  if (!adopted) return false;
  if (adopted->is_new) {
    std::ranges::copy(payload.first(wanted.block_bytes), kv_.block_memory(adopted->block).begin());
    restore.n_tokens += backend::kBlockTokens;
  }
  if (adopted->state != kNoState)
    std::ranges::copy(payload.subspan(wanted.block_bytes), kv_.state_memory(adopted->state).begin());
  return true;
}

void DiskTier::save(BlockId block, StateId state, const kv::PrefixDigest& digest, const kv::PrefixDigest& parent,
                    std::span<const TokenId> tokens, const kv::PrefixKey& key) {
  if (digest == kv::kNoDigest || store_->find(digest)) return;
  prefix_store::RecordHeader header{
      .n_tokens = static_cast<uint32_t>(tokens.size()), .digest = digest, .parent = parent};
  header.model_hash = key.model_hash;
  header.adapters_hash = key.adapters_hash;
  header.numerics = key.numerics_version;
  header.kv_type = key.kv_type;
  header.block_bytes = block_bytes_;
  header.state_bytes = state == kNoState ? 0 : state_bytes_;
  std::ranges::copy(tokens, header.tokens.begin());
  const auto state_memory = state == kNoState ? std::span<std::byte>() : kv_.state_memory(state);
  if (!worker_->write(header, kv_.block_memory(block), state_memory)) ++n_unwritten_;
}

void DiskTier::save_lost(kv::BlockManager& blocks) {
  if (!is_on() || blocks.lost().empty()) return;
  const bool is_kept = pays(1);
  for (const kv::LostBlock& lost : blocks.lost()) {
    if (is_kept) save(lost.block, lost.state, lost.digest, lost.parent, lost.tokens, lost.key);
  }
  blocks.clear_lost();
}

int64_t DiskTier::begin_saving(const kv::BlockManager& blocks) {
  if (!is_on()) return 0;
  n_to_save_ = blocks.pool().n_blocks();
  n_seen_ = blocks.n_entries();
  return n_seen_;
}

bool DiskTier::save_some(const kv::BlockManager& blocks, bool beside_others) {
  if (!is_on()) return false;
  const kv::BlockPool& pool = blocks.pool();
  n_seen_ = std::min(n_seen_, blocks.n_entries());
  const bool fills_up = pool.n_free() < pool.n_blocks() / 2;
  if (n_to_save_ == 0 && fills_up && blocks.n_entries() - n_seen_ > pool.n_blocks() / kNewShare) begin_saving(blocks);
  if (n_to_save_ == 0 || !pays(1)) return false;
  save_part(blocks, beside_others ? kSavedBesideOthers : kSavedAtOnce);
  return n_to_save_ > 0 && worker_->has_room_to_write();
}

void DiskTier::save_part(const kv::BlockManager& blocks, size_t most_bytes) {
  for (size_t n_bytes = 0; n_to_save_ > 0 && n_bytes < most_bytes && worker_->has_room_to_write();) {
    const BlockId block = --n_to_save_;
    const auto content = blocks.content_of(block);
    if (!content || content->digest == kv::kNoDigest || store_->find(content->digest)) continue;
    const StateId state = blocks.states().checkpoint_of(block);
    save(block, state, content->digest, content->parent, content->tokens, content->key);
    n_bytes += block_bytes_;
  }
}

void DiskTier::finish(const kv::BlockManager& blocks) {
  begin_saving(blocks);
  if (!is_on() || !pays(1)) return;
  const auto until = std::chrono::steady_clock::now() + kMostAtTheEnd;
  while (n_to_save_ > 0 && worker_->wait_for_room(until)) save_part(blocks, kSavedAtOnce);
}

void DiskTier::forget() noexcept {
  for (const auto& restore : restores_) restore->reading->stop();
  restores_.clear();
  n_to_save_ = 0;
}

DiskCacheStats DiskTier::stats() const {
  DiskCacheStats stats;
  stats.is_on = is_on();
  if (!is_on()) return stats;
  const DiskTimes times = worker_->times();
  const prefix_store::StoreFigures figures = store_->figures();
  stats.problem = figures.last_problem;
  stats.tokens_restored = n_restored_tokens_;
  stats.saved_ms =
      static_cast<double>(compute_ns_) / 1e6 * static_cast<double>(stats.tokens_restored / backend::kBlockTokens);
  stats.read_bytes = times.n_read_bytes;
  stats.read_ms = static_cast<double>(times.read_ns) / 1e6;
  stats.written_bytes = times.n_written_bytes;
  stats.blocks_damaged = static_cast<int64_t>(figures.n_damaged);
  stats.blocks_unwritten = static_cast<int64_t>(figures.n_unwritten) + n_unwritten_;
  stats.folder_bytes = static_cast<int64_t>(figures.n_bytes);
  stats.folder_blocks = static_cast<int64_t>(figures.n_blocks);
  return stats;
}

}  // namespace candor::engine
