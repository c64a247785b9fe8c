#pragma once
// The messages by which rank 0 tells the other ranks what to do: plans of steps, and what is created and destroyed
// between steps. All ranks run the same version (checked when they connect), so numbers are sent as they lie in memory.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/split.h"
#include "backend/step_batch.h"
#include "base/error.h"
#include "base/ids.h"

namespace candor::backend {

enum class Order : uint8_t { kStep, kCopyBlock, kMakeKv, kDropKv, kReserve, kEnd };

using Bytes = std::vector<std::byte>;

class OrderWriter {
 public:
  // Begins a new order in `bytes`, which keeps its memory.
  OrderWriter(Bytes& bytes, Order order) : bytes_(bytes) {
    bytes_.clear();
    put(order);
  }
  template <class T>
  void put(const T& value) {
    put_all(std::span(&value, 1));
  }
  template <class T>
  void put_list(std::span<const T> values) {
    put(static_cast<uint64_t>(values.size()));
    put_all(values);
  }

 private:
  template <class T>
  void put_all(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (values.empty()) return;
    const size_t at = bytes_.size();
    bytes_.resize(at + values.size_bytes());
    std::memcpy(bytes_.data() + at, values.data(), values.size_bytes());
  }
  Bytes& bytes_;
};

class OrderReader {
 public:
  explicit OrderReader(std::span<const std::byte> bytes) : left_(bytes) {}
  template <class T>
  T take() {
    T value{};
    take_all(std::span(&value, 1));
    return value;
  }
  template <class T>
  void take_list(std::vector<T>& values) {
    const auto n = take<uint64_t>();
    CANDOR_CHECK(n <= left_.size() / sizeof(T));
    values.resize(n);
    take_all(std::span(values));
  }

 private:
  template <class T>
  void take_all(std::span<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    CANDOR_CHECK(left_.size() >= values.size_bytes());
    if (!values.empty()) std::memcpy(values.data(), left_.data(), values.size_bytes());
    left_ = left_.subspan(values.size_bytes());
  }
  std::span<const std::byte> left_;
};

// A step as it arrives, with the arrays that its batch borrows.
struct StepOrder {
  Pass pass;
  int32_t kv = 0;
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions;
  std::vector<SeqSlice> seqs;
  std::vector<BlockId> block_table;
  int32_t max_blocks = 0;
  std::vector<int32_t> out_rows;
  std::vector<StateSave> saves;
  std::vector<VisibleGroup> groups;
  std::vector<int32_t> vector_rows;
  std::vector<float> vectors;
  std::vector<int32_t> axes;
  int32_t n_axes = 0;
  std::vector<AdapterUse> uses;

  StepBatch batch() const {
    return {tokens, positions,   seqs,    block_table, max_blocks, out_rows, saves,
            groups, vector_rows, vectors, axes,        n_axes,     uses};
  }
};

void write_step(Bytes& bytes, const Pass& pass, int32_t kv, const StepBatch& batch);
// REQUIRES, all: the order was taken from the reader.
void read_step(OrderReader& reader, StepOrder& step);
void write_make_kv(Bytes& bytes, const KvLayout& layout, KvSize size);
KvLayout read_layout(OrderReader& reader);
void write_arena(Bytes& bytes, const ArenaLayout& layout);
ArenaLayout read_arena(OrderReader& reader);

}  // namespace candor::backend
