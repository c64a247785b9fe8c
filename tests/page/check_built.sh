#!/bin/sh
# web/dist is what the sources give, and the sources are well typed: check_built.sh NODE. 77: the packages are absent.
set -eu
cd "$(dirname "$0")/../../web"
if ! [ -d node_modules/esbuild ]; then
  echo "skipped: the packages of web/package-lock.json are not installed (sh scripts/setup_page.sh)"
  exit 77
fi
"$1" build.mjs --check
"$1" node_modules/typescript/bin/tsc --noEmit
