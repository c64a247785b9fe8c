#include "model/hub/hub_quantization.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

namespace candor::model {
namespace {

using nlohmann::json;

constexpr std::string_view kRemedy =
    "read are fp8 (E4M3), compressed-tensors' nvfp4-pack-quantized, pack-quantized of 4 and 8 bits, float-quantized of "
    "8 bits and "
    "int-quantized by channel with dynamic activations by token, gptq, awq, auto-round, bitsandbytes, hqq and modelopt "
    "(NVFP4, FP8); else get "
    "the model in BF16 or as a GGUF file";

}  // namespace

json member_of(const json& object, std::string_view key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  return !object.is_object() || at == object.end() ? json() : *at;
}

Error refused_quantization(std::string_view name, std::string_view place, const json& seen, std::string_view expected) {
  const std::string text = seen.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
  return fail(ErrorKind::kUnsupported, fmt::format("{}: quantization_config: {} is {}, expected {}; {}", name, place,
                                                   text, expected, kRemedy));
}

Error refused_method(std::string_view name, std::string_view method) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("{}: quantization_config: quant_method is {}, which is not read; {}", name,
                          method.substr(0, 60), kRemedy));
}

Result<void> check_quantization(const json& object, std::string_view place, std::initializer_list<ExpectedMember> rows,
                                std::string_view name) {
  for (const ExpectedMember& row : rows) {
    const json seen = member_of(object, row.key);
    if (seen != row.value) {
      return refused_quantization(name, fmt::format("{}.{}", place, row.key), seen, row.value.dump());
    }
  }
  return {};
}

}  // namespace candor::model
