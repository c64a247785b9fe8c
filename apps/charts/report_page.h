#pragma once
// A whole report as one HTML file that needs nothing else: facts, tables, pictures and the figures as JSON. No script.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/charts/svg.h"
#include "base/error.h"

namespace candor::apps {

struct ReportTable {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct ReportPage {
  std::string heading;
  std::vector<std::pair<std::string, std::string>> facts;  // a name and what is said of it
  std::vector<ReportTable> tables;
  std::vector<Svg> pictures;
  std::string json;  // all figures
};

std::string to_html(const ReportPage& page);

// Before what takes long: whether there is a path, and it can be written.
Result<void> check_writable(const std::optional<std::string>& path);
// The error names the file.
Result<void> write_picture_file(const std::string& path, const std::string& text);

}  // namespace candor::apps
