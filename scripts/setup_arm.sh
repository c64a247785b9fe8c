#!/bin/sh
# Installs what builds and tries the product for 64-bit Arm: Debian's cross compiler and qemu, Rust's standard library for
# that target, and into build/arm-root the Arm versions of the libraries of scripts/packages.txt. Nothing of them is
# installed into the system itself.
set -eu
cd "$(dirname "$0")/.."
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
CANDOR_SETUP_QUIET=1 sh scripts/setup.sh scripts/arm_packages.txt
if ! ls "$(rustc --print sysroot)/lib/rustlib" | grep -q '^aarch64-unknown-linux-gnu$'; then
  command -v rustup >/dev/null 2>&1 || {
    printf 'setup: this Rust has no standard library for aarch64-unknown-linux-gnu, and there is no rustup to add it\n' >&2
    exit 1
  }
  rustup --quiet target add aarch64-unknown-linux-gnu >&2
fi

root=$PWD/build/arm-root
state=$PWD/build/arm-apt
libraries="libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libutf8proc-dev libedit-dev libboost1.81-dev libssl-dev
           libturbojpeg0-dev libncurses-dev libbsd-dev libmd-dev"
[ ! -f "$root/.complete" ] || exit 0
mkdir -p "$state/lists/partial" "$state/archives/partial" "$root"
arm_apt() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$state/lists" \
    -o Dir::Cache="$state" -o Dir::State::status=/dev/null -o APT::Sandbox::User=root "$@"
}
printf 'setup: fetching libraries for 64-bit Arm\n' >&2
arm_apt update
# shellcheck disable=SC2086
(cd "$state/archives" && arm_apt download $libraries)
for package in "$state"/archives/*.deb; do
  dpkg -x "$package" "$root"
done
find "$root" -name '*.so' -delete  # their libraries are not here: static ones are linked
touch "$root/.complete"
