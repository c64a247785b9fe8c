// GPT-2: learned positions, LayerNorms with biases, Q, K and V in one tensor, a GELU feed-forward of 4 D, the head
// tied. Radford et al., 2019.

#include "model/families/common.h"
#include "model/families/gpt2_parts.h"

namespace candor::model {
namespace gpt2 {
namespace {

// The first checkpoints have no "transformer." before their names: hub_folder tries both.
constexpr auto kHubTensors = gpt2_hub_tensors(HubChange::kTranspose);
constexpr HubForm kHub[] = {{.model_type = "gpt2",
                             .architecture = "GPT2LMHeadModel",
                             .activation = "gelu_new",
                             .tensors = kHubTensors,
                             .ignored = kGpt2HubIgnored,
                             .has_old_keys = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_gpt2(file, "gpt2");
}

}  // namespace
}  // namespace gpt2

Family gpt2_family() {
  using namespace gpt2;
  return {"gpt2", read, kGpt2Tensors, {}, kHub};
}

}  // namespace candor::model
