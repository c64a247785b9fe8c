// What adapters add to products, turn by turn: the first adapter of every row, then the second of those that have one.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "backend/cpu/adapter_ops.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/op_terms.h"
#include "backend/row_uses.h"

namespace candor::backend::cpu {
namespace {

// fn(groups) for each turn.
template <class Fn>
void for_turns(std::span<const RowUses::Group> groups, Fn&& fn) {
  while (!groups.empty()) {
    const auto end = std::ranges::upper_bound(groups, groups.front().turn, {}, &RowUses::Group::turn);
    const auto n = static_cast<size_t>(end - groups.begin());
    fn(groups.first(n));
    groups = groups.subspan(n);
  }
}

}  // namespace

const RowUses& AdapterOps::uses_of(std::span<const int32_t> rows) {
  if (rows.empty()) return uses_;
  row_uses_.find(batch_, rows);
  return row_uses_;
}

void AdapterOps::adapt(const op::Adapt& call) {
  for_turns(uses_of(call.rows).groups(), [&](std::span<const RowUses::Group> groups) {
    thin_.begin();
    for (const RowUses::Group& group : groups) {
      for (const AdapterTerm& term : call.terms) {
        if (term.adapter != group.use.adapter) continue;
        thin_rows_.clear();
        for (const int32_t row : group.rows)
          thin_rows_.push_back({arena_.row(call.src, row), arena_.row(term.dst, row)});
        thin_.add(term, group.use.scale, thin_rows_);
      }
    }
    thin_.run();
  });
}

// [rank] of a token: a row of the table.
void AdapterOps::adapt(const op::AdaptEmbedding& call) {
  for_turns(uses_.groups(), [&](std::span<const RowUses::Group> groups) {
    thin_.begin();
    table_terms_.clear();
    table_terms_.reserve(groups.size() * call.tables.size());
    size_t n_floats = 0;
    for (const AdapterTable& table : call.tables) n_floats += static_cast<size_t>(table.down->n_cols());
    table_rows_.resize(n_floats * static_cast<size_t>(call.dst.n_rows));
    float* next = table_rows_.data();
    for (const RowUses::Group& group : groups) {
      for (const AdapterTable& table : call.tables) {
        if (table.adapter == group.use.adapter) next = adapt_embedding(call, table, group, next);
      }
    }
    thin_.run();
  });
}

// next: where rows of tables are kept; what is left of it.
float* AdapterOps::adapt_embedding(const op::AdaptEmbedding& call, const AdapterTable& table,
                                   const RowUses::Group& group, float* next) {
  const CpuWeight& rows = own(*table.down);
  const float scale = group.use.scale;
  thin_rows_.clear();
  for (const int32_t row : group.rows) {
    if (batch_.vector_of(row) != nullptr) continue;
    float* dst = arena_.row(call.dst, row);
    rows.decode_row(batch_.tokens[static_cast<size_t>(row)], next);
    if (table.up != nullptr) {
      thin_rows_.push_back({next, dst});
      next += rows.n_cols();
      continue;
    }
    table_.scale(next, call.scale, call.dst.n_cols, next);
    if (scale == 1.0f) {
      std::memcpy(dst, next, static_cast<size_t>(call.dst.n_cols) * sizeof(float));
    } else {
      table_.add_scaled(dst, -1.0f, call.dst.n_cols, next);
      table_.add_scaled(next, scale, call.dst.n_cols, dst);
    }
  }
  if (table.up == nullptr) return next;
  table_terms_.push_back({.up = table.up, .scale = table.scale * call.scale});
  thin_.add_from_middle(table_terms_.back(), scale, thin_rows_);
  return next;
}

void AdapterOps::adapt_experts(const MoeTerm& term, ExpertPart part, const ExpertVisits& visits, Activation src,
                               Activation dst) {
  if (term.adapters.empty()) return;
  const bool is_by_row = part != ExpertPart::kDown && !term.spec.weighs_inputs;
  for_turns(uses_.groups(), [&](std::span<const RowUses::Group> groups) {
    thin_.begin();
    for (const RowUses::Group& group : groups) {
      for (const ExpertAdapter& each : term.adapters) {
        if (each.part != part || each.term.adapter != group.use.adapter) continue;
        add_expert_rows(each, group, {visits, is_by_row, src, dst});
      }
    }
    thin_.run();
  });
}

void AdapterOps::add_expert_rows(const ExpertAdapter& adapter, const RowUses::Group& group, const ExpertRows& rows) {
  const auto expert = static_cast<size_t>(adapter.expert);
  const std::span<const int32_t> firsts = rows.visits.firsts;
  thin_rows_.clear();
  for (const int32_t row : group.rows) {
    for (const RowVisit& visit : rows.visits.of(row)) {
      if (visit.place < firsts[expert] || visit.place >= firsts[expert + 1]) continue;
      thin_rows_.push_back(
          {arena_.row(rows.src, rows.is_by_row ? row : visit.place), arena_.row(rows.dst, visit.place)});
    }
  }
  thin_.add(adapter.term, group.use.scale, thin_rows_);
}

}  // namespace candor::backend::cpu
