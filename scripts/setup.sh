#!/bin/sh
# Installs what the build needs and is not here yet. Quiet and quick when nothing is missing.
#   sh scripts/setup.sh [LIST]
# Debian packages: those of LIST (scripts/packages.txt). Rust: any cargo >= 1.87 that is here, else Debian's rustc-web
# and cargo-web.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
list=${1:-$root/scripts/packages.txt}
say() { printf 'setup: %s\n' "$*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null 2>&1; then sudo "$@"
  else say "root is needed to install packages: run '$*' as root, then try again"; exit 1
  fi
}

install() {
  if ! command -v apt-get >/dev/null 2>&1; then
    say "this system has no apt-get. Install the equivalents of: $*"
    exit 1
  fi
  say "installing: $*"
  log=$(mktemp)
  if ! { as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
         as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "the installation failed (whole log: $log)"
    exit 1
  fi
  rm -f "$log"
}

missing=""
while read -r name version _; do
  case "$name" in ''|'#'*) continue ;; esac
  have=$(dpkg-query -W -f='${db:Status-Abbrev}${Version}' "$name" 2>/dev/null || true)
  case "$have" in
    ii*"$version"*) ;;
    ii*) [ "${CANDOR_SETUP_QUIET:-}" ] || say "note: $name is ${have#ii }, tested with $version" ;;
    *) missing="$missing $name" ;;
  esac
done <"$list"
# shellcheck disable=SC2086
[ -z "$missing" ] || install $missing

[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
rust_is_new_enough() {
  command -v cargo >/dev/null 2>&1 && command -v rustc >/dev/null 2>&1 || return 1
  minor=$(rustc --version | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
  [ "${minor:-0}" -ge 87 ]
}
rust_is_new_enough || install rustc-web cargo-web
rust_is_new_enough || { say "cargo and rustc 1.87 or newer are needed; found: $(rustc --version 2>&1 || true)"; exit 1; }
