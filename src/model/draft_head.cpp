#include "model/draft_head.h"

#include "model/eagle.h"
#include "model/families/families.h"
#include "model/prediction.h"

namespace candor::model {

bool is_head_alone(const formats::ModelFile& file) {
  return is_eagle(file) || is_prediction_alone(file);
}

Result<ArchSpec> head_arch(const formats::ModelFile& file, const ArchSpec& model) {
  return is_eagle(file) ? eagle_arch(file, model) : prediction_arch(file, model);
}

Result<std::vector<Binding>> bind_head(const formats::ModelFile& file, const ArchSpec& spec) {
  if (is_eagle(file)) return bind_tensors(file, eagle3_family(), spec);
  CANDOR_ASSIGN(const Family* family, family_of(file));
  return bind_prediction(file, *family, spec);
}

Result<std::vector<TokenId>> drafted_tokens(const formats::ModelFile& file, const ArchSpec& spec) {
  return is_eagle(file) ? eagle_tokens(file, spec) : std::vector<TokenId>();
}

}  // namespace candor::model
