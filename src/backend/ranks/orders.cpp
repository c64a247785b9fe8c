#include "backend/ranks/orders.h"

namespace candor::backend {

// A member that is added to a batch has to travel as well.
static_assert(sizeof(StepBatch) == 11 * sizeof(std::span<const int32_t>) + 2 * sizeof(int64_t));
static_assert(sizeof(ArenaLayout) == sizeof(std::vector<int32_t>) + sizeof(std::vector<bool>) + 4 * sizeof(int32_t));
static_assert(sizeof(KvLayout) == 4 * sizeof(int32_t) + sizeof(StateLayout) + 8 + sizeof(std::vector<KvHeads>));

void write_step(Bytes& bytes, const Pass& pass, int32_t kv, const StepBatch& batch) {
  OrderWriter writer(bytes, Order::kStep);
  writer.put(pass);
  writer.put(kv);
  writer.put(batch.max_blocks);
  writer.put_list(batch.tokens);
  writer.put_list(batch.positions);
  writer.put_list(batch.seqs);
  writer.put_list(batch.block_table);
  writer.put_list(batch.out_rows);
  writer.put_list(batch.saves);
  writer.put_list(batch.groups);
  writer.put_list(batch.vector_rows);
  writer.put_list(batch.vectors);
  writer.put_list(batch.axes);
  writer.put(batch.n_axes);
  writer.put_list(batch.uses);
}

void read_step(OrderReader& reader, StepOrder& step) {
  step.pass = reader.take<Pass>();
  step.kv = reader.take<int32_t>();
  step.max_blocks = reader.take<int32_t>();
  reader.take_list(step.tokens);
  reader.take_list(step.positions);
  reader.take_list(step.seqs);
  reader.take_list(step.block_table);
  reader.take_list(step.out_rows);
  reader.take_list(step.saves);
  reader.take_list(step.groups);
  reader.take_list(step.vector_rows);
  reader.take_list(step.vectors);
  reader.take_list(step.axes);
  step.n_axes = reader.take<int32_t>();
  reader.take_list(step.uses);
}

void write_make_kv(Bytes& bytes, const KvLayout& layout, KvSize size) {
  OrderWriter writer(bytes, Order::kMakeKv);
  writer.put(layout.n_layers);
  writer.put(layout.n_kv_heads);
  writer.put(layout.head_dim);
  writer.put(layout.type);
  writer.put(layout.state);
  writer.put(layout.latent_dim);
  writer.put_list(std::span<const KvHeads>(layout.heads));
  writer.put(size.n_blocks);
  writer.put(size.n_states);
}

KvLayout read_layout(OrderReader& reader) {
  KvLayout layout;
  layout.n_layers = reader.take<int32_t>();
  layout.n_kv_heads = reader.take<int32_t>();
  layout.head_dim = reader.take<int32_t>();
  layout.type = reader.take<KvType>();
  layout.state = reader.take<StateLayout>();
  layout.latent_dim = reader.take<int32_t>();
  reader.take_list(layout.heads);
  return layout;
}

void write_arena(Bytes& bytes, const ArenaLayout& layout) {
  OrderWriter writer(bytes, Order::kReserve);
  writer.put_list(std::span<const int32_t>(layout.slot_cols));
  for (const bool is_output : layout.slot_is_output) writer.put(static_cast<uint8_t>(is_output));
  writer.put(layout.max_rows);
  writer.put(layout.max_out_rows);
  writer.put(layout.max_input_cols);
  writer.put(layout.max_positions);
}

ArenaLayout read_arena(OrderReader& reader) {
  ArenaLayout layout;
  reader.take_list(layout.slot_cols);
  for (size_t i = 0; i < layout.slot_cols.size(); ++i) layout.slot_is_output.push_back(reader.take<uint8_t>() != 0);
  layout.max_rows = reader.take<int32_t>();
  layout.max_out_rows = reader.take<int32_t>();
  layout.max_input_cols = reader.take<int32_t>();
  layout.max_positions = reader.take<int32_t>();
  return layout;
}

}  // namespace candor::backend
