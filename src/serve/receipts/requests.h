#pragma once
// A receipt's check as a request of the server's.

#include <string_view>

#include "base/error.h"
#include "serve/core/api_request.h"
#include "serve/core/request_terms.h"

namespace candor::serve::receipts {

// body: the receipt, or {"receipt": the receipt, "model": the name of the model that checks it, "images": the files of
// the prompt's images in base64}.
Result<ApiRequest> parse_verification(std::string_view body, const RequestTerms& terms);

}  // namespace candor::serve::receipts
