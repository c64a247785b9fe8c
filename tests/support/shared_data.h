#pragma once
// Where tests find the data that is not part of the project. Absent, such tests skip and say so.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace candor::testing {

// ../shared/data beside the project's root, or CANDOR_TEST_DATA.
std::filesystem::path shared_data();

// Of the project's own files; CANDOR_TEST_PROJECT names the root of a copy on another machine.
std::filesystem::path project_file(const std::string& relative);

// The folder of tests/families/goldens as builds make them whole (golden_store.py), or CANDOR_TEST_GOLDENS.
std::filesystem::path goldens();

}  // namespace candor::testing

// Skips the test when the file or folder is absent.
#define CANDOR_REQUIRE_DATA(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "test data absent: " << (path)
