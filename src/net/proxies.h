#pragma once
// Which proxy a request takes, by the variables that command lines share: http_proxy (in small letters alone, since a
// web server could be sent HTTP_PROXY as a header), https_proxy, all_proxy and no_proxy, these in either case.

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "net/url.h"

namespace candor::client {

// The value of a variable of the environment; nullptr where it is not set.
using Environment = std::function<const char*(const char*)>;

// nullopt: straight to the host. Refuses proxies of another kind than http.
Result<std::optional<Url>> proxy_for(const Url& url, const Environment& environment);

}  // namespace candor::client
