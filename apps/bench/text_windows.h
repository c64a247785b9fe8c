#pragma once
// A text as the windows of tokens in which a model reads it, for commands that read texts whole.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "formats/model_file.h"

namespace candor::apps {

struct TextWindows {
  std::vector<std::vector<TokenId>> tokens{};  // two in each, at least
  std::vector<size_t> document{};              // that each window belongs to
  size_t n_documents = 0;
};

struct WindowOptions {
  size_t n_tokens = 0;                    // of a window, at most
  std::optional<std::string> split_at{};  // stands between two documents
  bool parse_special = false;
};

// Each begins with the beginning token, where the model has one and the text does not begin with it itself; none
// reaches over the end of a document. Refuses a text of fewer than two tokens.
Result<TextWindows> windows_of(const formats::ModelFile& file, std::string_view text, const WindowOptions& options);

}  // namespace candor::apps
