#include "apps/commands/receipt_output.h"

#include <CLI/CLI.hpp>

#include "apps/options/prompt_source.h"
#include "candor/verify.h"
#include "formats/new_file.h"

namespace candor::apps {

void add_receipt_output(CLI::App& command, ReceiptOutput& options) {
  command.add_option("--receipt", options.file, "write what anyone can check the answer by: candor verify FILE")
      ->type_name("FILE");
  command.add_option("--receipt-key", options.key_file, "sign the receipt with this Ed25519 key (PEM)")
      ->type_name("FILE");
}

Result<std::string> receipt_key(const ReceiptOutput& options) {
  if (options.file) CANDOR_TRY(formats::NewFile::create(*options.file));
  if (!options.key_file) return std::string();
  if (!options.file) {
    return fail(ErrorKind::kInvalidInput, "--receipt-key signs what --receipt FILE writes: give both");
  }
  CANDOR_ASSIGN(std::string pem, read_text_file(*options.key_file, "the key"));
  Receipt empty;
  if (auto signs = sign(empty, pem); !signs) return signs.error();
  return pem;
}

Result<void> write_receipt(const ReceiptOutput& options, const std::string& key, const RequestSummary& summary) {
  if (!options.file) return {};
  if (summary.receipt == nullptr)
    return fail(ErrorKind::kInvalidInput, "there is no receipt: the answer is incomplete");
  Receipt receipt = *summary.receipt;
  if (!key.empty()) CANDOR_TRY(sign(receipt, key));
  return formats::write_file(*options.file, to_json(receipt) + "\n");
}

}  // namespace candor::apps
