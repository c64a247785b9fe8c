// What adapters add to products, in double.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/op_terms.h"
#include "backend/reference/reference_ops.h"

namespace candor::backend::reference {
namespace {

std::vector<double> product(const Weight& weight, std::span<const double> x) {
  std::vector<double> y(static_cast<size_t>(weight.n_rows()));
  for (size_t i = 0; i < y.size(); ++i) {
    const float* row = decoded(weight).row(static_cast<int64_t>(i));
    for (size_t k = 0; k < x.size(); ++k) y[i] += static_cast<double>(row[k]) * x[k];
  }
  return y;
}

}  // namespace

void ReferenceOps::adapt_row(const AdapterTerm& term, const float* src, float row_scale, float* dst) {
  const double scale = static_cast<double>(row_scale);
  const std::vector<double> x(src, src + (term.down == nullptr ? term.up : term.down)->n_cols());
  const std::vector<double> y = product(*term.up, term.down == nullptr ? x : product(*term.down, x));
  for (size_t i = 0; i < y.size(); ++i) {
    double sum = static_cast<double>(dst[i]);
    if (term.down == nullptr) {
      sum += scale * (y[i] - sum);
    } else if (term.gains == nullptr) {
      sum += scale * static_cast<double>(term.scale) * y[i];
    } else {
      const double gain = static_cast<double>(decoded(*term.gains).row(0)[i]);
      const double bias = term.bias == nullptr ? 0.0 : static_cast<double>(decoded(*term.bias).row(0)[i]);
      sum += scale * ((gain - 1.0) * (sum - bias) + gain * static_cast<double>(term.scale) * y[i]);
    }
    dst[i] = static_cast<float>(sum);
  }
}

void ReferenceOps::compute(const op::Adapt& call) {
  for (int32_t i = 0; i < call.src.n_rows; ++i) {
    const int32_t row_of_step = call.rows.empty() ? i : call.rows[static_cast<size_t>(i)];
    for (const AdapterUse& use : batch_.uses_of(batch_.slice_of(row_of_step))) {
      for (const AdapterTerm& term : call.terms) {
        if (term.adapter == use.adapter) adapt_row(term, row(call.src, i), use.scale, row(term.dst, i));
      }
    }
  }
}

void ReferenceOps::adapt_token(const op::AdaptEmbedding& call, const AdapterTable& table, int32_t at, float row_scale) {
  const double scale = static_cast<double>(row_scale);
  const double table_scale = static_cast<double>(call.scale);
  const float* rows = decoded(*table.down).row(batch_.tokens[static_cast<size_t>(at)]);
  const std::vector<double> x(rows, rows + table.down->n_cols());
  const std::vector<double> y = table.up == nullptr ? x : product(*table.up, x);
  float* dst = row(call.dst, at);
  for (size_t i = 0; i < y.size(); ++i) {
    const double before = static_cast<double>(dst[i]);
    const double added =
        table.up == nullptr ? y[i] * table_scale - before : y[i] * table_scale * static_cast<double>(table.scale);
    dst[i] = static_cast<float>(before + scale * added);
  }
}

void ReferenceOps::compute(const op::AdaptEmbedding& call) {
  for (int32_t i = 0; i < call.dst.n_rows; ++i) {
    if (batch_.vector_of(i) != nullptr) continue;
    for (const AdapterUse& use : batch_.uses_of(batch_.slice_of(i))) {
      for (const AdapterTable& table : call.tables) {
        if (table.adapter == use.adapter) adapt_token(call, table, i, use.scale);
      }
    }
  }
}

// Rows of src and dst: the expert's visits.
void ReferenceOps::adapt_expert(const MoeTerm& term, int32_t expert, ExpertPart part, Activation src, Activation dst) {
  const std::span<const Routing::Visit> visits = routing_.visits(expert);
  for (size_t i = 0; i < visits.size(); ++i) {
    const auto at = static_cast<int32_t>(i);
    for (const AdapterUse& use : batch_.uses_of(batch_.slice_of(visits[i].row))) {
      for (const ExpertAdapter& each : term.adapters) {
        if (each.expert != expert || each.part != part || each.term.adapter != use.adapter) continue;
        adapt_row(each.term, row(src, at), use.scale, row(dst, at));
      }
    }
  }
}

}  // namespace candor::backend::reference
