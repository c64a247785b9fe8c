#include "apps/charts/report_page.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "candor/version.h"

namespace candor::apps {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --quiet: #57606a; --line: #dfe3e8; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --quiet: #a4adb8; --line: #30363d; --paper: #15181c; } }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
       font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2, caption { font-size: 1.05rem; font-weight: 600; text-align: left; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: var(--quiet); } dd { margin: 0; }
.wide { overflow-x: auto; margin: 1.5rem 0; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; } caption { padding-bottom: .4rem; }
th, td { padding: .25rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { color: var(--quiet); font-weight: 500; } th:first-child, td:first-child { text-align: left; padding-left: 0; }
svg { max-width: 100%; height: auto; display: block; margin: 1.5rem 0; }
pre { overflow-x: auto; font-size: 12px; } footer { color: var(--quiet); margin-top: 2rem; }
)";

std::string to_html(const ReportTable& table) {
  std::string out = fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"{0}\"><table><caption>{0}</caption>\n<thead><tr>",
      escaped_xml(table.caption));
  for (const std::string& column : table.columns) out += fmt::format("<th scope=\"col\">{}</th>", escaped_xml(column));
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += fmt::format("<td>{}</td>", escaped_xml(cell));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

Error cannot_write(const std::string& path) {
  return {ErrorKind::kIo, fmt::format("can't write {}: is the folder there, and writable?", path)};
}

}  // namespace

std::string to_html(const ReportPage& page) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n<dl>\n",
      escaped_xml(page.heading), kStyle);
  for (const auto& [name, words] : page.facts)
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped_xml(name), escaped_xml(words));
  out += "</dl>\n";
  for (const ReportTable& table : page.tables) out += to_html(table);
  for (const Svg& picture : page.pictures) out += picture.document();
  return out + fmt::format(
                   "<details>\n<summary>All figures, as JSON</summary>\n<pre tabindex=\"0\">{}</pre>\n</details>\n"
                   "</main>\n<footer>Candor {}</footer>\n</body>\n</html>\n",
                   escaped_xml(page.json), kVersion);
}

Result<void> check_writable(const std::optional<std::string>& path) {
  if (!path) return {};
  std::error_code ignored;
  const bool was_there = std::filesystem::exists(*path, ignored);
  const bool is_open = std::ofstream(*path, std::ios::app).is_open();
  if (is_open && !was_there) std::filesystem::remove(*path, ignored);
  if (is_open) return {};
  return cannot_write(*path);
}

Result<void> write_picture_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return cannot_write(path);
}

}  // namespace candor::apps
