// docs/models.md says what the program knows.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "model/families/families.h"
#include "quantize/recipe.h"
#include "support/shared_data.h"

namespace candor::testing {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string family_row(const model::Family& family) {
  std::string types;
  for (const model::HubForm& form : family.hub) {
    types += fmt::format("{}`{}`", types.empty() ? "" : ", ", form.model_type);
  }
  return fmt::format("| `{}` | {} |", family.name, types);
}

TEST(models_doc, lists_every_family_with_the_names_of_both_formats) {
  const std::string doc = read_text(project_file("docs/models.md"));
  for (const model::Family& family : model::families()) {
    EXPECT_NE(doc.find(family_row(family)), std::string::npos) << "docs/models.md lacks: " << family_row(family);
  }
}

TEST(models_doc, lists_every_type_that_quantize_writes) {
  const std::string doc = read_text(project_file("docs/models.md"));
  for (const quantize::Recipe& recipe : quantize::recipes()) {
    const std::string cell = fmt::format("`{}`", recipe.name);
    EXPECT_NE(doc.find(cell), std::string::npos) << "docs/models.md lacks " << cell;
  }
}

}  // namespace
}  // namespace candor::testing
