#pragma once
// A user's cache folder of a test's own (XDG_CACHE_HOME), empty and gone with the object.

#include <cstdlib>
#include <optional>
#include <string>

#include "support/temp_folder.h"

namespace candor::testing {

class CacheFolder : public TempFolder {
 public:
  CacheFolder() {
    if (const char* before = std::getenv(kName)) before_ = before;
    ::setenv(kName, path().c_str(), 1);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  ~CacheFolder() {
    if (before_) ::setenv(kName, before_->c_str(), 1);
    if (!before_) ::unsetenv(kName);
  }

 private:
  static constexpr const char* kName = "XDG_CACHE_HOME";
  std::optional<std::string> before_;
};

}  // namespace candor::testing
