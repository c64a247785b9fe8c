#pragma once
// Which side holds each part of a model, for a backend of two sides: a device with memory of its own, and the host. The
// parts stand in the order in which a step computes them: input, blocks, output. Plain data; any thread.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace candor::backend {

enum class Side : uint8_t { kDevice, kHost };
inline constexpr size_t kSides = 2;
constexpr Side other_side(Side side) {
  return side == Side::kDevice ? Side::kHost : Side::kDevice;
}

// kInput: what makes rows of tokens. kBlock: a block without its experts. kOutput: what makes logits of rows.
enum class ModelPart : uint8_t { kOther, kInput, kBlock, kExperts, kOutput };

// The place of a weight in its model.
struct WeightPlace {
  ModelPart part = ModelPart::kOther;
  int32_t block = 0;  // of kBlock and kExperts
  bool operator==(const WeightPlace&) const = default;
};

// Vectors belong to no part: both sides have them.
struct Placement {
  Side rest = Side::kDevice;  // of all that is not named below
  Side input = Side::kDevice;
  Side output = Side::kDevice;
  std::vector<Side> blocks{};        // [blocks]
  std::vector<Side> experts{};       // [blocks]
  std::vector<Side> kv_layers{};     // [layers of the K/V store]
  std::vector<Side> state_layers{};  // [layers with a recurrent state]
  bool operator==(const Placement&) const = default;

  static Placement all_on(Side side) { return {.rest = side, .input = side, .output = side}; }
  Side of(WeightPlace place) const {
    switch (place.part) {
      case ModelPart::kInput:
        return input;
      case ModelPart::kOutput:
        return output;
      case ModelPart::kBlock:
        return at(blocks, place.block);
      case ModelPart::kExperts:
        return at(experts, place.block);
      case ModelPart::kOther:
        break;
    }
    return rest;
  }
  Side of_kv_layer(int32_t layer) const { return at(kv_layers, layer); }
  Side of_state_layer(int32_t layer) const { return at(state_layers, layer); }

 private:
  Side at(const std::vector<Side>& sides, int32_t i) const {
    return static_cast<size_t>(i) < sides.size() ? sides[static_cast<size_t>(i)] : rest;
  }
};

}  // namespace candor::backend
