#!/bin/sh
# Installs what builds the page (web/) and tests it in a browser: Node's packages as web/package-lock.json pins them, and
# chromium. The program is built without them: web/dist is checked in. Without a network the tests are skipped.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh scripts/page_packages.txt
command -v npm >/dev/null 2>&1 || sh scripts/setup.sh scripts/node_packages.txt
stamp=web/node_modules/.package-lock.pinned
if ! cmp -s web/package-lock.json "$stamp"; then
  (cd web && npm ci --silent --no-audit --no-fund)
  cp web/package-lock.json "$stamp"
fi
