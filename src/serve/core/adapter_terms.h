#pragma once
// The adapters of a served model as clients name them: "base:NAME" or "NAME" in place of a model (vLLM), numbers with
// scales in "lora" (llama.cpp), names with scales in "adapters"; and the scales that hold where a request says nothing.
// Any thread.

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "candor/engine.h"
#include "candor/request.h"
#include "serve/core/fields.h"

namespace candor::serve {

class AdapterTerms {
 public:
  // Borrowed.
  explicit AdapterTerms(const Engine& engine) : engine_(engine) {}

  std::vector<AdapterInfo> list() const { return engine_.adapters(); }
  // The adapter's name in "base:NAME" or "NAME", where there is such a one. is_base: whether a name is the model's.
  template <class IsBase>
  std::optional<std::string> named_by(std::string_view model, IsBase is_base) const {
    if (is_base(std::string(model))) return std::nullopt;
    for (const AdapterInfo& adapter : list()) {
      const std::string end = ":" + adapter.name;
      if (model == adapter.name) return adapter.name;
      if (model.ends_with(end) && is_base(std::string(model.substr(0, model.size() - end.size())))) return adapter.name;
    }
    return std::nullopt;
  }

  // "lora" and "adapters" of a request; nothing where it has neither.
  std::optional<std::vector<RequestAdapter>> read(Fields& fields) const;

  // What requests use that name none.
  std::vector<RequestAdapter> defaults() const;
  // [{id, scale}]: all others' scales become 0.
  Result<void> set_defaults(const Json& list);

 private:
  Result<std::vector<RequestAdapter>> by_number(const Json& list) const;

  const Engine& engine_;
  mutable std::mutex mutex_;
  std::vector<RequestAdapter> defaults_;  // guarded by mutex_
};

}  // namespace candor::serve
