// StarCoder and SantaCoder (GPT-BigCode): GPT-2 with one K/V head for all queries. Li et al., 2023; Shazeer, 2019.

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/gpt2_parts.h"

namespace candor::model {
namespace starcoder {
namespace {

constexpr std::array kHubHead = {HubTensor{"output.weight", "lm_head.weight"}};
constexpr auto kHubTensors = join(gpt2_hub_tensors(HubChange::kNone), kHubHead);

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<bool> shares_kv, hub_flag(config, "multi_query"));
  if (!shares_kv.value_or(true)) {
    return fail(
        ErrorKind::kUnsupported,
        "config.json: \"multi_query\" is false: gpt_bigcode models with K and V for every head are not supported");
  }
  const std::string key = std::string(prefix) + ".attention.head_count_kv";
  if (metadata.find(key) == nullptr) metadata.add(key, uint64_t{1});
  return {};
}
void write_hub(const ArchSpec&, nlohmann::ordered_json& config) {
  config["activation_function"] = "gelu_pytorch_tanh";
  config["multi_query"] = true;
}
constexpr HubForm kHub[] = {{.model_type = "gpt_bigcode",
                             .architecture = "GPTBigCodeForCausalLM",
                             .activation = "gelu_new",
                             .tensors = kHubTensors,
                             .ignored = kGpt2HubIgnored,
                             .read = read_hub,
                             .write = write_hub,
                             .has_old_keys = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_gpt2(file, "starcoder");
}

}  // namespace
}  // namespace starcoder

Family starcoder_family() {
  using namespace starcoder;
  return {"starcoder", read, kGpt2Tensors, {}, kHub};
}

}  // namespace candor::model
