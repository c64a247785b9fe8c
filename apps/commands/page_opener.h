#pragma once
// Tells where the server's page is, and opens it where there is a browser.

#include <string>

namespace candor::apps {

// opens: asks the desktop (xdg-open) to show it, which it does beside this program. One without a desktop gets the
// address alone.
void show_page(const std::string& address, bool opens);

}  // namespace candor::apps
