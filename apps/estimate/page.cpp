#include "apps/estimate/page.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "apps/terminal/terminal.h"
#include "model/arch_cost.h"
#include "model/model.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

std::string bytes_text(double n_bytes) {
  return format_bytes(static_cast<uint64_t>(n_bytes));
}

std::string count_text(double n) {
  return format_count(static_cast<int64_t>(std::llround(n)));
}

// "7.17 TFLOP", "6.74 G weights"
std::string metric(double value, const char* unit) {
  constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P", "E", "Z"};
  size_t i = 0;
  for (; value >= 999.5 && i + 1 < kPrefixes.size(); ++i) value /= 1000;
  return fmt::format("{:.3g} {}{}", value, kPrefixes[i], unit);
}

// "812 us", "12.3 ms", "1.34 s", "2 h 5 min"
std::string time_text(double ms) {
  if (ms < 0.9995) return fmt::format("{:.3g} us", 1e3 * ms);
  if (ms < 999.5) return fmt::format("{:.3g} ms", ms);
  if (ms < 600e3) return fmt::format("{:.3g} s", ms / 1e3);
  const auto minutes = static_cast<int64_t>(std::llround(ms / 60e3));
  return minutes < 60 ? fmt::format("{} min", minutes)
                      : fmt::format("{} h {} min", format_count(minutes / 60), minutes % 60);
}

std::string per_second_text(double per_s) {
  return per_s < 10 ? fmt::format("{:.3g}", per_s) : fmt::format("{:.1f}", per_s);
}

using Format = std::string (*)(double);

std::string on_own_line_if_long(const std::string& text) {
  constexpr size_t kMost = 50;
  return text.size() > kMost ? "\n  " + text : text;
}

class EstimatePage {
 public:
  EstimatePage(const Json& figures, const Subject& subject) : figures_(figures), subject_(subject) {
    if (figures.contains("measured")) measured_ = &figures.at("measured");
  }

  std::string write() {
    head();
    memory();
    if (figures_.contains("image")) image();
    prefill();
    decode();
    whole();
    tail();
    return std::move(out_);
  }

 private:
  double of(const char* key) const { return figures_.at(key).get<double>(); }

  void line(std::string_view label, std::string_view what, std::string_view value = "",
            std::string_view measured = "") {
    std::string text = fmt::format("{:<13} {:<40} {:>12}", label, what, value);
    if (!measured.empty()) text += fmt::format(" {:>12}", measured);
    out_ += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
  }
  // The estimate of a figure, and beside it what was measured.
  void figure(std::string_view label, std::string_view what, const char* key, Format format) {
    const bool is_measured = measured_ != nullptr && measured_->contains(key);
    line(label, what, format(of(key)), is_measured ? format(measured_->at(key).get<double>()) : "");
  }

  void head() {
    out_ += fmt::format("{} on {}\n{}\n", subject_.name, figures_.at("hardware_description").get<std::string>(),
                        figures_.at("hardware_rates").get<std::string>());
    if (of("efficiency") != 1 || of("overhead_ms") != 0)
      out_ += fmt::format("at {:g} % of these limits, and {} more for each step\n", 100 * of("efficiency"),
                          time_text(of("overhead_ms")));
    if (measured_ != nullptr) line("", "", "estimate", "measured");
  }

  void memory() {
    const double n_batch = of("batch");
    const std::string of_bits = fmt::format("{} x {:.3g} bits", count_text(of("parameters")), subject_.bits_per_weight);
    figure("weights", of_bits, "weight_bytes", bytes_text);
    experts();
    if (of("unused_parameters") > 0)
      line("", fmt::format("left out: {} of token prediction", metric(of("unused_parameters"), "")));
    figure("K/V cache", kv_formula(), "kv_bytes_per_token", bytes_text);
    const double n_tokens = of("prompt") + of("new");
    figure("",
           n_batch == 1 ? fmt::format("for {} tokens", count_text(n_tokens))
                        : fmt::format("for {} x {} tokens", n_batch, count_text(n_tokens)),
           "kv_bytes", bytes_text);
    figure("", "for 131 072 tokens", "kv_bytes_128k", bytes_text);
    figure("", "for 1 048 576 tokens", "kv_bytes_1m", bytes_text);
    if (of("state_bytes") > 0) figure("states", "of recurrent layers, any length", "state_bytes", bytes_text);
    figure("memory", figures_.contains("image") ? "weights, tower and K/V together" : "weights and K/V together",
           "memory_bytes", bytes_text);
    if (figures_.at("devices").is_null()) return;
    const double n_devices = of("devices");
    line("",
         fmt::format("devices of {}{}", bytes_text(of("device_memory_bytes")),
                     n_devices > 1 ? ", exchange left out" : ""),
         fmt::format("{:g}", n_devices));
  }

  void experts() {
    const model::ArchCost& cost = subject_.cost;
    if (cost.parameters.experts == 0) return;
    line("", fmt::format("a token uses {:g} of {:g} experts", cost.n_used, cost.n_experts),
         metric(of("used_parameters"), " weights"));
  }

  std::string kv_formula() const {
    const auto layout = model::kv_layout(subject_.spec, model::usual_kv(subject_.spec, KvType::kBf16));
    const std::string layers = fmt::format("{} layers", layout.n_layers);
    const int n_bytes = layout.type == KvType::kF32 ? 4 : 2;
    if (!layout.has_values()) return fmt::format("{} x latent of {} x {} bytes", layers, layout.head_dim, n_bytes);
    return fmt::format("2 x {} x {} heads x {} x {} bytes", layers, layout.n_kv_heads, layout.head_dim, n_bytes);
  }

  void image() {
    const Json& image = figures_.at("image");
    const auto number = [&image](const char* key) { return image.at(key).get<double>(); };
    const double n_tiles = number("tiles");
    line("image",
         fmt::format("{} x {}: {}{} patches", image.at("width").get<int>(), image.at("height").get<int>(),
                     n_tiles > 1 ? fmt::format("{:g} tiles, ", n_tiles) : "", count_text(number("patches"))),
         count_text(number("rows")) + " rows");
    line("", fmt::format("{} in the tower, of each tile", metric(number("parameters"), " weights")),
         bytes_text(number("weight_bytes")));
    line("", "products with them", metric(number("encode_matrix_flops"), "FLOP"));
    line("",
         fmt::format("attention within tiles, {:.3g} % of it all",
                     100 * number("encode_attention_flops") / number("encode_flops")),
         metric(number("encode_attention_flops"), "FLOP"));
    figure("", of("batch") > 1 ? "time to encode one for each, at least" : "time to encode it, at least", "encode_ms",
           time_text);
  }

  void prefill() {
    const double n_batch = of("batch"), n_prompt = of("prompt");
    const std::string tokens =
        n_batch == 1 ? count_text(n_prompt) : fmt::format("{} x {}", n_batch, count_text(n_prompt));
    const double by_row = subject_.is_paper ? of("parameters") : of("used_parameters") - subject_.cost.parameters.head;
    line("prefill", fmt::format("2 x {} x {} tokens", metric(by_row, " weights"), tokens),
         metric(of("prefill_matrix_flops"), "FLOP"));
    line("", fmt::format("attention, {:.3g} % of the whole", 100 * of("prefill_attention_flops") / of("prefill_flops")),
         metric(of("prefill_attention_flops"), "FLOP"));
    if (of("prefill_state_flops") > 0) line("", "recurrent states", metric(of("prefill_state_flops"), "FLOP"));
    figure("", "time to the first token, at least", "ttft_ms", time_text);
  }

  void decode() {
    const double n_batch = of("batch"), n_new = of("new");
    const std::string tokens = n_batch == 1 ? count_text(n_new) : fmt::format("{} x {}", n_batch, count_text(n_new));
    line("decode", fmt::format("2 x {} x {} tokens", metric(of("used_parameters"), " weights"), tokens),
         metric(of("decode_matrix_flops"), "FLOP"));
    line("", fmt::format("attention over {:.0f}..{:.0f}", of("attended_from"), of("attended_to")),
         metric(of("decode_attention_flops"), "FLOP"));
    figure("", "weights read once a token, at least", "itl_weights_only_ms", time_text);
    figure("", fmt::format("with K/V ({} read), at least", bytes_text(of("decode_read_bytes"))), "itl_ms", time_text);
    figure("", "tokens a second, at most", "decode_tokens_per_second", per_second_text);
  }

  void whole() {
    const std::string n_new = count_text(of("new"));
    figure("answer", fmt::format("first token and {} more, at least", n_new), "answer_ms", time_text);
    figure("", "answers a second, at most", "answers_per_second", per_second_text);
    line("no K/V cache", "all before it again for each token", metric(of("naive_flops"), "FLOP"));
    figure("", "the same answer, at least", "naive_ms", time_text);
    figure("", "times as long", "naive_times", per_second_text);
    figure("", "times as many projections to K and V", "kv_cache_saves", per_second_text);
  }

  void tail() {
    line("growth",
         fmt::format("attention O(T^2), feed-forward O(T d^2), in each of {} layers", subject_.spec.blocks.size()));
    if (figures_.contains("price_per_million_tokens"))
      line("price", "of a million decoded tokens", fmt::format("{:.4g}", of("price_per_million_tokens")));
    const double n_last = of("attended_to") + 1;
    if (subject_.spec.max_positions > 0 && n_last > subject_.spec.max_positions)
      out_ +=
          fmt::format("on paper alone: the model was made for {} tokens\n", format_count(subject_.spec.max_positions));
    if (!subject_.assumed.empty())
      out_ += fmt::format("assumed as in {}: {}\n", subject_.assumed_from, on_own_line_if_long(subject_.assumed));
    if (of("kv_bytes_per_token") > 0 && figures_.at("devices").is_null())
      out_ += "how many devices: --memory-gb says how much one holds\n";
  }

  const Json& figures_;
  const Subject& subject_;
  const Json* measured_ = nullptr;
  std::string out_;
};

}  // namespace

std::string estimate_page(const Json& figures, const Subject& subject) {
  return EstimatePage(figures, subject).write();
}

}  // namespace candor::apps
