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
# All that stands beside this script but what belongs into /etc and to systemd.
files=$(cd "$here" && find bin include lib share -type f ! -path 'lib/systemd/*')
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
  for folder in share/candor/models/pocket share/doc/candor include/candor lib/cmake/candor; do
    (cd "$prefix" && rmdir -p "$folder" 2>/dev/null) || true
  done
  echo "removed from $prefix"
  exit 0
fi
echo "installed: $prefix/bin/candor"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) echo "$prefix/bin is not in PATH: add it, or call the program by its whole name" ;;
esac
