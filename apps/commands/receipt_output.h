#pragma once
// `--receipt FILE` and `--receipt-key KEY`: an answer's receipt, signed where asked for, written when the answer is
// over.

#include <optional>
#include <string>

#include "base/error.h"
#include "candor/event.h"

namespace CLI {
class App;
}

namespace candor::apps {

struct ReceiptOutput {
  std::optional<std::string> file;
  std::optional<std::string> key_file;
};

void add_receipt_output(CLI::App& command, ReceiptOutput& options);
// Before anything is computed: the file can be written, the key can be read and does not stand alone.
Result<std::string> receipt_key(const ReceiptOutput& options);
// key: of receipt_key(). An answer that has none is an error.
Result<void> write_receipt(const ReceiptOutput& options, const std::string& key, const RequestSummary& summary);

}  // namespace candor::apps
