#include "apps/estimate/ranks.h"

#include <cstdint>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/terminal/terminal.h"
#include "model/rank_splits.h"

namespace candor::apps {
namespace {

Result<model::Link> link_of(const EstimateOptions& options) {
  const model::Link* known = model::find_link(options.link);
  if (known == nullptr) {
    std::string names;
    for (const model::Link& link : model::known_links())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", link.name);
    return fail(ErrorKind::kInvalidInput, fmt::format("--link \"{}\" is not known; known are {}", options.link, names));
  }
  model::Link link = *known;
  if (options.latency_us) link.latency_s = 1e-6 * *options.latency_us;
  return link;
}

// What part of a prompt or a token takes on all ranks: its share of the arithmetic or of the weights, and the
// exchanges.
nlohmann::ordered_json part_of(double alone_ms, double n_ranks, const model::ExpectedTraffic& traffic,
                               const model::Link& link) {
  const double exchange_ms = 1e3 * model::exchange_seconds(traffic, link);
  const double ms = alone_ms / n_ranks + exchange_ms;
  return {{"exchanges", traffic.n_exchanges},
          {"sent_bytes", traffic.sent_bytes},
          {"exchange_ms", exchange_ms},
          {"ms", ms},
          {"exchange_share", exchange_ms / ms},
          {"speedup", alone_ms / ms}};
}

// Of what is put together before a block's output projection.
double mixed_width(const model::BlockSpec& block) {
  int64_t width = 0;
  if (block.has_attention) width += int64_t{block.attn.n_heads} * block.attn.head_dim;
  if (block.has_delta()) width += block.delta.v_width();
  if (block.has_ssm()) width += block.ssm.width();
  if (block.has_gated_conv()) width += block.gated_conv.n_channels;
  return static_cast<double>(width);
}

}  // namespace

model::RankShape rank_shape_of(const model::ArchSpec& spec, double bits_per_weight) {
  model::RankShape shape{.n_layers = static_cast<double>(spec.blocks.size()),
                         .n_exchanges = model::exchanges_of_layers(spec) / static_cast<double>(spec.blocks.size()),
                         .dim = static_cast<double>(spec.dim),
                         .vocab = static_cast<double>(spec.vocab),
                         .input_bytes = model::input_bytes_of(bits_per_weight)};
  for (const model::BlockSpec& block : spec.blocks) {
    shape.heads_width += mixed_width(block) / shape.n_layers;
    const int64_t n_experts = block.ffn.is_moe() ? block.ffn.moe.n_used : 1;
    shape.ffn_width += static_cast<double>(n_experts * block.ffn.ffn_dim + block.ffn.shared_dim) / shape.n_layers;
  }
  return shape;
}

Result<void> add_rank_figures(const EstimateOptions& options, const Subject& subject, nlohmann::ordered_json& figures) {
  if (!options.n_ranks) return {};
  CANDOR_ASSIGN(const model::Link link, link_of(options));
  const model::RankShape shape = rank_shape_of(subject.spec, subject.bits_per_weight);
  const auto n_ranks = static_cast<double>(*options.n_ranks);
  const double n_devices = figures.at("devices").is_null() ? 1 : figures.at("devices").get<double>();
  const auto part = [&](const char* ms, double n_rows) {
    const auto traffic = model::expected_traffic(shape, n_ranks, n_rows * options.sequences(), options.sequences());
    return part_of(figures.at(ms).get<double>() * n_devices, n_ranks, traffic, link);
  };
  figures["ranks"] = {{"n", *options.n_ranks},
                      {"link", std::string(link.name)},
                      {"latency_us", 1e6 * link.latency_s},
                      {"bytes_per_second", link.bytes_per_s},
                      {"exchanges_of_layer", shape.n_exchanges},
                      {"decode", part("itl_ms", 1)},
                      {"prefill", part("ttft_ms", options.prompt_tokens())}};
  return {};
}

std::string ranks_page(const nlohmann::ordered_json& figures) {
  if (!figures.contains("ranks")) return {};
  const auto& ranks = figures["ranks"];
  std::string out = fmt::format("{:<13} {} by {} ({:g} us, {:.3g} GB/s), {:.3g} exchanges a layer\n", "ranks",
                                ranks["n"].get<int64_t>(), ranks["link"].get<std::string>(),
                                ranks["latency_us"].get<double>(), ranks["bytes_per_second"].get<double>() / 1e9,
                                ranks["exchanges_of_layer"].get<double>());
  for (const char* name : {"decode", "prefill"}) {
    const auto& part = ranks[name];
    const auto number = [&part](const char* key) { return part[key].get<double>(); };
    out += fmt::format("{:<13} {}: {:g} exchanges, {} sent by each: {} of {} ({:.0f} %), {:.2f} x one\n", "", name,
                       number("exchanges"), format_bytes(static_cast<uint64_t>(number("sent_bytes"))),
                       format_ms(number("exchange_ms")), format_ms(number("ms")), 100 * number("exchange_share"),
                       number("speedup"));
  }
  return out;
}

}  // namespace candor::apps
