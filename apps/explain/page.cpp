#include "apps/explain/page.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "apps/bench/machine_limits.h"
#include "apps/terminal/terminal.h"

namespace candor::apps {
namespace {

constexpr size_t kLineWidth = 100;
constexpr int kBarWidth = 24;

std::string duration(double ms) {
  return ms < 1.0 ? fmt::format("{:.0f} us", 1e3 * ms) : format_ms(ms);
}

std::string bar(double share) {
  return std::string(static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth + 0.5), '#');
}

// Columns that a terminal shows; every code point is taken for one.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(std::string text, size_t width, std::string_view shown) {
  const size_t n = columns(shown);
  return text + std::string(width > n ? width - n : 0, ' ');
}

class Page {
 public:
  Page(const Engine& engine, const Trace& trace) : engine_(engine), info_(engine.info()), trace_(trace) {}

  std::string text() {
    show_prompt();
    show_shapes();
    show_times();
    for (const TokenEvent& event : trace_.events) show_token(event);
    return out_;
  }

 private:
  void heading(int step, std::string_view title) { out_ += style_.bold(fmt::format("{} {}", step, title)) + "\n"; }
  void shape(std::string_view what, std::string_view shape, std::string_view note = "") {
    out_ += fmt::format("  {:<26} {:<22} {}\n", what, shape, style_.dim(note));
  }
  std::string piece(TokenId token) const { return printable(engine_.piece(token)); }

  void show_prompt() {
    heading(1, fmt::format("text to {} tokens: {}, a vocabulary of {}", trace_.prompt.size(), info_.tokenizer,
                           format_count(info_.n_vocab)));
    std::string line = " ";
    for (const TokenId token : trace_.prompt) {
      const std::string shown = fmt::format(" {}:{}", token, piece(token));
      if (columns(line) + columns(shown) > kLineWidth) {
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
    heading(3, fmt::format("{} layers, each: norm, attention, add; norm, feed-forward, add", info_.n_layers));
    if (!spec.blocks.empty()) show_layer(spec.blocks.front(), n);
    out_ += fmt::format("  {} parameters, {} of weights, {}\n", format_count(info_.n_parameters),
                        format_bytes(info_.weight_bytes), info_.backend_description);
    out_ += fmt::format("  K/V cache: {} blocks of {} tokens in {}, {}; {} of the prompt's tokens were there\n",
                        info_.kv_blocks, info_.kv_block_tokens, info_.kv_type, format_bytes(info_.kv_bytes),
                        trace_.summary.usage.cached_tokens);
    if (info_.draft_parameters > 0)
      out_ += fmt::format("  drafts: {}, {} parameters\n", info_.draft_path.filename().string(),
                          format_count(info_.draft_parameters));
    heading(4, "the last vector to one number a token of the vocabulary");
    shape("norm, output projection", fmt::format("1 x 1 x {}", info_.n_vocab),
          fmt::format("of 1 x {} x {}: only the last row is wanted", n, info_.n_vocab));
  }

  void show_layer(const model::BlockSpec& block, size_t n) {
    const backend::AttnSpec& attn = block.attn;
    shape("queries", fmt::format("1 x {} x {} x {}", n, attn.n_heads, attn.head_dim), "texts x tokens x heads x width");
    shape(block.has_latent() ? "latents" : "keys, values", fmt::format("1 x {} x {} x {}", n, attn.n_kv_heads, attn.head_dim),
          block.has_latent() ? fmt::format("key of all {} heads; the first {} are its value", attn.n_heads, attn.latent_dim)
          : attn.n_kv_heads < attn.n_heads ? fmt::format("{} heads share one", attn.n_heads / attn.n_kv_heads)
                                           : "");
    shape("scores, softmax", fmt::format("1 x {} x {} x {}", attn.n_heads, n, n),
          attn.window_tokens > 0 ? fmt::format("each over the {} tokens up to its own", attn.window_tokens)
                                 : "each over the tokens up to its own");
    const std::string experts =
        block.ffn.is_moe() ? fmt::format("{} of {} experts", block.ffn.moe.n_used, block.ffn.moe.n_experts) : "";
    shape("feed-forward", fmt::format("1 x {} x {}", n, block.ffn.ffn_dim), experts);
  }

  void show_times() {
    heading(5, "where the time and the bytes went");
    const auto limits = info_.backend == "cpu" ? known_limits(info_.n_threads) : std::nullopt;
    show_phase("prefill", trace_.prefill);
    if (limits && trace_.prefill.compute_ms > 0.0) {
      const double ops = 2.0 * static_cast<double>(info_.n_parameters * trace_.prefill.n_rows);
      show_limit(ops / (trace_.prefill.compute_ms * 1e-3) / 1e9, limits->int8_ops / 1e9, "GOP/s", "int8 arithmetic");
    }
    show_phase("decode", trace_.decode);
    if (limits && trace_.decode.compute_ms > 0.0) {
      const double bytes = static_cast<double>(trace_.decode.ops.total().weight_bytes);
      show_limit(bytes / (trace_.decode.compute_ms * 1e-3) / 1e9, limits->dram_read_bytes / 1e9, "GB/s",
                 "what memory gives (a small model comes from the caches, which give more)");
    }
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
    out_ += fmt::format("    {:<14} {:>9} {:>4.0f} % {:<{}} {}\n", name, duration(ms), 100.0 * share, bar(share),
                        kBarWidth, style_.dim(note));
  }

  void show_token(const TokenEvent& event) {
    if (!event.explanation) return;
    const TokenExplanation& explanation = *event.explanation;
    n_shown_ = event.choice == choice_ ? n_shown_ + 1 : 1;
    choice_ = event.choice;
    const std::string answer = explanation.beam_option ? fmt::format("answer {}, ", choice_ + 1) : "";
    heading(6, fmt::format("{}token {}: from {} logits to one", answer, n_shown_, format_count(info_.n_vocab)));
    for (const StageView& stage : explanation.stages) show_stage(stage, event.token);
    heading(7, "the choice");
    if (explanation.beam_option) {
      show_options(explanation);
    } else {
      show_draw(event);
    }
    heading(8, fmt::format("token to text: \"{}\"{}{}", printable(event.text),
                           event.finish ? fmt::format(", and the end ({})", to_string(*event.finish)) : "",
                           event.score ? fmt::format(", score {:.4f}", *event.score) : ""));
  }

  void show_draw(const TokenEvent& event) {
    const TokenExplanation& explanation = *event.explanation;
    out_ += explanation.was_drawn
                ? fmt::format("  {:.6f} was drawn with seed {}", explanation.draw, trace_.summary.usage.seed)
                : "  the best is taken";
    out_ += fmt::format(": {} {}", event.token, style_.green(piece(event.token)));
    if (explanation.draft >= 0)
      out_ +=
          fmt::format(" (drafted {}: {})", piece(explanation.draft),
                      explanation.draft == event.token ? "accepted, so that the next row counts as well" : "rejected");
    out_ += "\n";
  }

  // The ways on of all texts; the token's own is marked.
  void show_options(const TokenExplanation& explanation) {
    out_ += style_.dim("  text   token                     score\n");
    for (size_t i = 0; i < explanation.beam_options.size(); ++i) {
      const BeamOption& option = explanation.beam_options[i];
      const bool is_chosen = i == *explanation.beam_option;
      const std::string shown = piece(option.token);
      out_ += fmt::format("  {:>4} {:>7} {} {:>9.4f} {}\n", option.parent + 1, option.token,
                          padded(is_chosen ? style_.green(shown) : shown, 16, shown), option.score,
                          std::string(to_string(option.fate)) + (is_chosen ? " <" : ""));
    }
  }

  void show_stage(const StageView& stage, TokenId chosen) {
    out_ += fmt::format("  {}: {} left{}\n", style_.cyan(stage.name), format_count(stage.n_left),
                        stage.name == "mask" ? fmt::format(" of {}", format_count(info_.n_vocab)) : "");
    for (const StageView::Candidate& c : stage.best) {
      const std::string shown = piece(c.token);
      out_ += fmt::format("    {:>7} {} {:>8.3f} {:>7.3f} {}\n", c.token,
                          padded(c.token == chosen ? style_.green(shown) : shown, 16, shown), c.logit, c.probability,
                          bar(c.probability));
    }
  }

  const Engine& engine_;
  const ModelInfo& info_;
  const Trace& trace_;
  int32_t choice_ = -1;  // that is being shown, and how many tokens of it
  int32_t n_shown_ = 0;
  Style style_{STDOUT_FILENO};
  std::string out_;
};

}  // namespace

std::string explain_page(const Engine& engine, const Trace& trace) {
  return Page(engine, trace).text();
}

}  // namespace candor::apps
