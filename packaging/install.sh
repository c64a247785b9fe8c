#!/bin/sh
# sh install.sh [PREFIX]: copies Candor below PREFIX (/usr/local, or ~/.local for who may not write there).
# sh install.sh --remove [PREFIX] takes away what it copied, and nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
remove=""
if [ "${1:-}" = --remove ]; then
  remove=yes
  shift
fi
usual=/usr/local
[ -w /usr/local/bin ] || usual=$HOME/.local
prefix=${1:-$usual}
files="bin/candor share/candor/models/pocket/pocket-q8_0.gguf share/man/man1/candor.1.gz
  share/bash-completion/completions/candor share/zsh/site-functions/_candor share/fish/vendor_completions.d/candor.fish
  share/doc/candor/copyright share/doc/candor/README.md"
for file in $files; do
  if [ -n "$remove" ]; then
    rm -f "$prefix/$file"
    continue
  fi
  mkdir -p "$prefix/$(dirname "$file")"
  cp "$here/$file" "$prefix/$file.new"
  mv "$prefix/$file.new" "$prefix/$file"
done
if [ -n "$remove" ]; then
  rmdir -p "$prefix/share/candor/models/pocket" "$prefix/share/doc/candor" 2>/dev/null || true
  echo "removed from $prefix"
  exit 0
fi
echo "installed: $prefix/bin/candor"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) echo "$prefix/bin is not in PATH: add it, or call the program by its whole name" ;;
esac
