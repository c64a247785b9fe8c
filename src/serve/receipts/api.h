#pragma once
// The route that checks receipts.

#include "serve/core/api.h"

namespace candor::serve::receipts {

extern const Api kApi;

}  // namespace candor::serve::receipts
