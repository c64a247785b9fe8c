#pragma once
// The page at `/` for browsers, and what it asks beyond the other interfaces: which parameters there are, and what the
// machine does now. The page itself is read without a key; it holds nothing of the server.

#include "serve/core/api.h"

namespace candor::serve::page {

extern const Api kApi;

}  // namespace candor::serve::page
