#include "apps/explain/page.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "apps/bench/machine_limits.h"
#include "apps/explain/image_map.h"
#include "apps/explain/positions.h"
#include "apps/explain/stages.h"
#include "apps/terminal/terminal.h"
#include "backend/op_specs.h"
#include "backend/wrap/timed_backend.h"
#include "candor/info.h"
#include "model/arch_spec.h"

namespace candor::apps {
namespace {

constexpr int kTimeBarWidth = 16;

std::string duration(double ms) {
  return ms < 1.0 ? fmt::format("{:.0f} us", 1e3 * ms) : format_ms(ms);
}

std::string time_bar(double share) {
  return std::string(static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kTimeBarWidth)), '#');
}

class Page {
 public:
  Page(const Engine& engine, const Trace& trace, const PageWish& wish)
      : engine_(engine), info_(engine.info()), trace_(trace), wish_(wish) {}

  std::string text() {
    show_prompt();
    if (wish_.level == Level::kFull) {
      show_shapes();
      show_times();
    }
    const TokenName name = [this](TokenId token) { return piece(token); };
    if (wish_.inside) out_ += inside_text(*wish_.inside, name, style_);
    out_ += image_maps_text(trace_.events, name, style_);
    return out_ + tokens_text(engine_, trace_.events,
                              {.sampling = wish_.sampling, .seed = trace_.summary.usage.seed, .level = wish_.level});
  }

 private:
  void heading(int step, std::string_view title) { out_ += style_.bold(fmt::format("{} {}", step, title)) + "\n"; }
  void shape(std::string_view what, std::string_view shape, std::string_view note = "") {
    out_ += fmt::format("  {:<23} {:<20} {}\n", what, shape, style_.dim(note));
  }
  std::string piece(TokenId token) const { return printable(engine_.piece(token)); }

  void show_prompt() {
    heading(1, fmt::format("text to {} tokens: {}, a vocabulary of {}", trace_.prompt.size(), info_.tokenizer,
                           format_count(info_.n_vocab)));
    std::string line = " ";
    for (const TokenId token : trace_.prompt) {
      const std::string shown = fmt::format(" {}:{}", token, piece(token));
      if (columns_of(line) + columns_of(shown) > width_) {
        out_ += line + "\n";
        line = " ";
      }
      line += shown;
    }
    out_ += line + "\n";
  }

  void show_shapes() {
    const model::ArchSpec& spec = trace_.spec;
    const size_t n = trace_.prompt.size();
    heading(2, "tokens to vectors");
    shape("embedding", fmt::format("1 x {} x {}", n, info_.dim), "texts x tokens x width");
    show_embedding();
    heading(3, fmt::format("{} layers, each: norm, attention, add; norm, feed-forward, add", info_.n_layers));
    if (!spec.blocks.empty()) show_layer(spec.blocks.front(), n);
    out_ += positions_text(trace_.positions, static_cast<int32_t>(n) - 1, spec.blocks.size());
    out_ += fmt::format("  {} parameters, {} of weights, {}\n", format_count(info_.n_parameters),
                        format_bytes(info_.weight_bytes), info_.backend_description);
    out_ += fmt::format("  K/V cache: {} blocks of {} tokens in {}, {}; {} prompt tokens were there\n", info_.kv_blocks,
                        info_.kv_block_tokens, info_.kv_type, format_bytes(info_.kv_bytes),
                        trace_.summary.usage.cached_tokens);
    if (info_.draft_parameters > 0)
      out_ += fmt::format(
          "  drafts: {}, {} parameters\n",
          info_.draft_path.empty() ? std::string("the model's own head") : info_.draft_path.filename().string(),
          format_count(info_.draft_parameters));
    heading(4, "the last vector to one number a token of the vocabulary");
    shape("norm, output projection", fmt::format("1 x 1 x {}", info_.n_vocab),
          fmt::format("the last row of 1 x {} x {}", n, info_.n_vocab));
  }

  void show_embedding() {
    if (!trace_.embedding) return;
    std::string numbers;
    for (const float x : trace_.embedding->first) numbers += fmt::format("{:.4f} ", x);
    out_ += fmt::format("  row {} ({}): {}... length {:.4g}\n", trace_.embedding->token, piece(trace_.embedding->token),
                        numbers, trace_.embedding->norm);
  }

  void show_layer(const model::BlockSpec& block, size_t n) {
    const backend::AttnSpec& attn = block.attn;
    shape("queries", fmt::format("1 x {} x {} x {}", n, attn.n_heads, attn.head_dim), "texts x tokens x heads x width");
    shape(block.has_latent() ? "latents" : "keys, values",
          fmt::format("1 x {} x {} x {}", n, attn.n_kv_heads, attn.head_dim),
          block.has_latent()
              ? fmt::format("key of all {} heads; the first {} are its value", attn.n_heads, attn.latent_dim)
          : attn.n_kv_heads < attn.n_heads ? fmt::format("{} heads share one", attn.n_heads / attn.n_kv_heads)
                                           : "");
    shape("scores, softmax", fmt::format("1 x {} x {} x {}", attn.n_heads, n, n),
          attn.window_tokens > 0 ? fmt::format("over the {} tokens up to its own", attn.window_tokens)
                                 : "over the tokens up to its own");
    const std::string experts =
        block.ffn.is_moe() ? fmt::format("{} of {} experts", block.ffn.moe.n_used, block.ffn.moe.n_experts) : "";
    shape("feed-forward", fmt::format("1 x {} x {}", n, block.ffn.ffn_dim), experts);
  }

  void show_times() {
    heading(5, "where the time and the bytes went");
    const auto limits = known_limits(info_);
    show_phase("prefill", trace_.prefill);
    if (limits && trace_.prefill.compute_ms > 0.0) {
      const double ops = 2.0 * static_cast<double>(info_.used_parameters * trace_.prefill.n_rows);
      show_limit(ops / (trace_.prefill.compute_ms * 1e-3) / 1e9, limit_of(*limits, info_.arithmetic) / 1e9, "GOP/s",
                 info_.arithmetic + " arithmetic");
    }
    show_phase("decode", trace_.decode);
    if (limits && trace_.decode.compute_ms > 0.0) {
      const double bytes = static_cast<double>(trace_.decode.ops.total().weight_bytes);
      show_limit(bytes / (trace_.decode.compute_ms * 1e-3) / 1e9, limits->dram_read_bytes / 1e9, "GB/s",
                 "memory's (caches give more)");
    }
    show_operations();
  }

  void show_operations() {
    if (trace_.operations.empty()) return;
    out_ += fmt::format("  {}: {}; x is a slot of activations, [rows, columns]\n",
                        style_.cyan("operations of the last step"), trace_.operations.size());
    for (const std::string& operation : trace_.operations) out_ += "    " + operation + "\n";
  }

  void show_limit(double value, double limit, std::string_view unit, std::string_view of) {
    out_ += fmt::format("    {:.1f} {} = {:.0f} % of this machine's {:.1f}: {}\n", value, unit, 100.0 * value / limit,
                        limit, of);
  }

  void show_phase(std::string_view name, const Phase& phase) {
    if (phase.n_steps == 0) return;
    const double whole = phase.compute_ms + phase.plan_ms + phase.pick_ms;
    out_ += fmt::format("  {}: {} rows in {} {}, {}\n", style_.cyan(name), phase.n_rows, phase.n_steps,
                        phase.n_steps == 1 ? "step" : "steps", format_ms(whole));
    for (size_t i = 0; i < backend::kOpKinds; ++i) {
      const backend::OpKind kind = static_cast<backend::OpKind>(i);
      const backend::OpTime& time = phase.ops.of(kind);
      if (time.n_calls == 0) continue;
      const double ms = static_cast<double>(time.ns) * 1e-6;
      const std::string bytes = time.weight_bytes > 0
                                    ? fmt::format("{} at {:.1f} GB/s", format_bytes(time.weight_bytes),
                                                  static_cast<double>(time.weight_bytes) / (ms * 1e6))
                                    : "";
      show_part(backend::op_name(kind), ms, whole, bytes);
    }
    show_part("plan, draft", phase.plan_ms, whole, "");
    show_part("choose tokens", phase.pick_ms, whole, "");
  }

  void show_part(std::string_view name, double ms, double whole, std::string_view note) {
    const double share = whole > 0.0 ? ms / whole : 0.0;
    out_ += fmt::format("    {:<14} {:>9} {:>4.0f} % {:<{}} {}\n", name, duration(ms), 100.0 * share, time_bar(share),
                        kTimeBarWidth, style_.dim(note));
  }

  const Engine& engine_;
  const ModelInfo& info_;
  const Trace& trace_;
  const PageWish& wish_;
  const size_t width_ = std::min<size_t>(100, terminal_columns(STDOUT_FILENO));
  Style style_{STDOUT_FILENO};
  std::string out_;
};

}  // namespace

std::string explain_page(const Engine& engine, const Trace& trace, const PageWish& wish) {
  return Page(engine, trace, wish).text();
}

}  // namespace candor::apps
