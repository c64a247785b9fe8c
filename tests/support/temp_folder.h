#pragma once
// A folder of a test's own, removed with all it holds when the object goes.

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace candor::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string form = (std::filesystem::temp_directory_path() / "candor_test_XXXXXX").string();
    if (mkdtemp(form.data()) == nullptr) ADD_FAILURE() << "no temporary folder: " << form;
    path_ = form;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

  // Writes a file and gives its path.
  std::filesystem::path file(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }
  std::filesystem::path file(const std::string& name, std::span<const std::byte> bytes) const {
    return file(name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace candor::testing
