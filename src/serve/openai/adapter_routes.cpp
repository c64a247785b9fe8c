#include "serve/openai/adapter_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "base/utf8.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"

namespace candor::serve::openai {
namespace {

namespace fs = std::filesystem;

std::string required(Fields& fields, const char* name) {
  const std::string text = fields.text(name).value_or("");
  if (text.empty()) fields.refuse(name, fmt::format("{} is missing, expected a text", name));
  return text;
}

// Inside of the folder, links followed.
Result<fs::path> path_in(const fs::path& folder, const std::string& asked) {
  const auto outside = [&](const char* why) {
    return Error{ErrorKind::kInvalidInput,
                 fmt::format("lora_path is \"{}\", which {}; expected an adapter in the server's --adapter-dir",
                             clipped(asked), why),
                 "lora_path"};
  };
  std::error_code failed;
  const fs::path root = fs::canonical(folder, failed);
  if (failed)
    return Error{ErrorKind::kIo, "the server's --adapter-dir cannot be read: " + failed.message(), "lora_path"};
  const fs::path path = fs::canonical(root / asked, failed);
  if (failed) return outside("is not there");
  const auto [end, rest] = std::ranges::mismatch(root, path);
  if (end != root.end() || rest == path.end()) return outside("lies elsewhere");
  return path;
}

// Where the folder lies is the server's affair.
Error without_folder(Error error, const fs::path& folder) {
  std::error_code failed;
  const std::string root = fs::canonical(folder, failed).string() + "/";
  for (size_t at = error.message.find(root); !failed && at != std::string::npos; at = error.message.find(root)) {
    error.message.erase(at, root.size());
  }
  return error;
}

void respond_text(http::Exchange& exchange, std::string text) {
  exchange.respond({.content_type = "text/plain; charset=utf-8", .body = std::move(text)});
}

}  // namespace

void AdapterRoutes::load(http::Exchange& exchange) const {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  const std::string name = required(fields, "lora_name");
  const std::string asked = required(fields, "lora_path");
  const double scale = fields.number("scale", -kMaxAdapterScale, kMaxAdapterScale).value_or(1.0);
  if (fields.fault()) return answer(exchange, *fields.fault());
  if (core_.limits().adapter_dir.empty()) {
    return answer(exchange, Error{ErrorKind::kUnsupported,
                                  "this server loads no adapters while it runs: start it with --adapter-dir FOLDER",
                                  "lora_path"});
  }
  const auto path = path_in(core_.limits().adapter_dir, asked);
  if (!path) return answer(exchange, path.error());
  const auto loaded = core_.engine.load_adapter({name, *path, scale});
  if (!loaded) return answer(exchange, without_folder(loaded.error(), core_.limits().adapter_dir));
  exchange.note(fmt::format("loaded the adapter {}, {} matrices of rank {}", name, loaded->n_matrices, loaded->rank));
  respond_text(exchange, fmt::format("Success: LoRA adapter '{}' added successfully.", name));
}

void AdapterRoutes::unload(http::Exchange& exchange) const {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  const std::string name = required(fields, "lora_name");
  if (fields.fault()) return answer(exchange, *fields.fault());
  if (core_.limits().adapter_dir.empty()) {
    return answer(exchange, Error{ErrorKind::kUnsupported,
                                  "this server drops no adapters while it runs: start it with --adapter-dir FOLDER",
                                  "lora_name"});
  }
  if (auto dropped = core_.engine.drop_adapter(name); !dropped) return answer(exchange, dropped.error());
  exchange.note("dropped the adapter " + name);
  respond_text(exchange, fmt::format("Success: LoRA adapter '{}' removed successfully.", name));
}

}  // namespace candor::serve::openai
