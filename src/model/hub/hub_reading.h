#pragma once
// What a checkpoint's folder says of texts that are read (text_head.h): sentence-transformers' modules.json with its
// poolings, dense layers and prompts, what else gives vectors, and the labels of config.json. Reads the folder's files;
// for one thread.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/hub/hub_heads.h"

namespace candor::model {

// What stands beside the model itself.
struct ReadingParts {
  std::vector<HeadFile> heads;
  bool guesses_words = false;  // its words are weighed by the head that guesses masked ones
};

// config: config.json. What is known and cannot be computed (a maximum of tokens, a path outside of the folder) is
// refused by name.
Result<ReadingParts> read_reading(const std::filesystem::path& folder, const nlohmann::json& config,
                                  std::string_view prefix, formats::MetaList& metadata);

}  // namespace candor::model
