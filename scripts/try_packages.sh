#!/bin/sh
# sh scripts/try_packages.sh [OUT [RELEASE MIRROR]]: tries what scripts/package.sh made, as root: the bare program in a root
# that holds nothing but glibc; the .deb and the .rpm in one that debootstrap makes (Ubuntu 18.04, which has the oldest glibc,
# 2.27; for Arm Debian 11); the image with podman. Packages for 64-bit Arm are tried under qemu; of candor-cuda, also what is
# said where there is no GPU, and that it takes the place of candor. Every line that it prints is something that was seen to
# work; the first that does not ends it.
set -eu
cd "$(dirname "$0")/.."
out=$(cd "${1:-build-package/out}" && pwd)
program=$(ls "$out"/candor-*-linux-x86_64 "$out"/candor-*-linux-aarch64 2>/dev/null || true)
case "$program" in */candor-cuda-*) name=candor-cuda ;; *) name=candor ;; esac
case "$program" in
  *x86_64) cpu=x86_64 debian=amd64 release=bionic mirror=http://archive.ubuntu.com/ubuntu compiler=g++ loader=/lib64/ld-linux-x86-64.so.2 ;;
  *) cpu=aarch64 debian=arm64 release=bullseye mirror=http://deb.debian.org/debian compiler=aarch64-linux-gnu-g++
     loader=/lib/ld-linux-aarch64.so.1 ;;
esac
release=${2:-$release}
mirror=${3:-$mirror}
is_native=""
if [ $cpu = "$(uname -m)" ]; then is_native=yes; else sh scripts/register_arm.sh; fi
[ "$(id -u)" = 0 ] || { echo "try_packages: roots are made by root" >&2; exit 2; }
work=$(mktemp -d)
server=""
clean_up() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  for root in bare old; do
    umount "$work/$root/proc" 2>/dev/null || true
    umount "$work/$root/dev/null" 2>/dev/null || true
  done
  mount | sed -n "s|.* on \($work/podman[^ ]*\) .*|\1|p" | sort -r | while read -r place; do umount "$place"; done
  mount | grep -qF " $work/" || rm -rf "$work"
}
trap clean_up EXIT
fail() {
  echo "try_packages: $*" >&2
  exit 1
}
good() { printf 'works: %s\n' "$*"; }

# give ROOT: /proc and /dev/null, which is all that the program asks of a system.
give() {
  mkdir -p "$1/proc" "$1/dev"
  mount -t proc proc "$1/proc"
  [ -e "$1/dev/null" ] || touch "$1/dev/null"
  mount --bind /dev/null "$1/dev/null"
}

# answers_in ROOT PROGRAM: a story, the doctor, and a server that is asked.
answers_in() {
  chroot "$1" "$2" run "Once upon a time" -n 20 --temperature 0 >"$work/story" 2>"$work/figures" ||
    fail "no story: $(cat "$work/figures")"
  if [ -s "$work/first_story" ]; then cmp -s "$work/story" "$work/first_story" || fail "another story: $(cat "$work/story")"; fi
  cp "$work/story" "$work/first_story"
  chroot "$1" "$2" doctor >"$work/doctor" || fail "doctor: $(cat "$work/doctor")"
  chroot "$1" "$2" serve --port 0 2>"$work/log" &
  server=$!
  for _ in $(seq 100); do
    address=$(sed -n 's/.*\(127\.0\.0\.1:[0-9][0-9]*\).*/\1/p' "$work/log" | head -n 1)
    [ -z "$address" ] || break
    sleep 0.1
  done
  [ -n "$address" ] || fail "no server: $(cat "$work/log")"
  python3 - "$address" <<'P' || fail "no answer from the server"
import json, sys, urllib.request
body = json.dumps({"messages": [{"role": "user", "content": "A story"}], "max_tokens": 8}).encode()
request = urllib.request.Request(f"http://{sys.argv[1]}/v1/chat/completions", body, {"Content-Type": "application/json"})
assert json.load(urllib.request.urlopen(request, timeout=20))["choices"][0]["message"]["content"]
P
  kill "$server"
  wait "$server" || fail "the server ended with $?"
  server=""
}

# says_why_no_gpu ROOT PROGRAM: a program with kernels for GPUs, in a root without a driver. Behind answers_in.
says_why_no_gpu() {
  grep -q "no GPU: no driver of NVIDIA" "$work/log" || fail "the server does not say why the CPU computes: $(cat "$work/log")"
  grep -q "GPU .*no driver of NVIDIA" "$work/doctor" || fail "doctor says nothing of GPUs: $(cat "$work/doctor")"
  code=0
  chroot "$1" "$2" run "Once upon a time" -n 4 --device cuda >"$work/log" 2>&1 || code=$?
  [ $code = 2 ] && grep -q "no driver of NVIDIA" "$work/log" || fail "--device cuda ends with $code: $(cat "$work/log")"
}

# stands_for_candor ROOT DEB: that candor-cuda takes the place of candor, and leaves it its keys.
stands_for_candor() {
  dpkg-deb -R "$2" "$work/repacked"
  sed -i 's/^Package: .*/Package: candor/; /^Conflicts:/d; /^Replaces:/d; /^Provides:/d' "$work/repacked/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone --build "$work/repacked" "$1/candor.deb" >"$work/log"
  rm -r "$work/repacked"
  cp "$2" "$1/candor-cuda.deb"
  for package in candor candor-cuda; do
    chroot "$1" dpkg -i /$package.deb >"$work/log" 2>&1 || fail "dpkg -i $package: $(cat "$work/log")"
    rm "$1/$package.deb"
    cat "$1/etc/candor/keys" >>"$work/keys"
  done
  chroot "$1" dpkg --purge candor >"$work/log" 2>&1 || fail "dpkg --purge candor: $(cat "$work/log")"
  cat "$1/etc/candor/keys" >>"$work/keys"
  [ "$(sort -u "$work/keys" | wc -l)" = 1 ] && [ -x "$1/usr/bin/candor" ] && [ -e "$1/etc/candor/serve.toml" ] || fail "candor took something of candor-cuda along"
}

# What is neither the package manager's nor a user's.
files_of() {
  find "$1" -xdev \( -path "$1/var" -o -path "$1/proc" -o -path "$1/root/.cache" \) -prune -o -print | sort
}

sed 's/^/  /' <<E2
$(readelf -d "$program" | sed -n 's/.*NEEDED.*\[\(.*\)\]/needs \1/p')
$(objdump -T "$program" | grep -o 'GLIBC_2[0-9.]*' | sort -Vu | tail -n 1 | sed 's/^/newest symbol: /')
E2

mkdir -p "$work/bare$(dirname $loader)" "$work/bare/lib" "$work/bare/bin" "$work/bare/share/candor/models/pocket"
cp "$($compiler -print-file-name="$(basename $loader)")" "$work/bare$loader"
for library in libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2; do
  cp "$($compiler -print-file-name=$library)" "$work/bare/lib/"
done
cp "$program" "$work/bare/bin/candor"
cp models/pocket/pocket-q8_0.gguf "$work/bare/share/candor/models/pocket/"
give "$work/bare"
answers_in "$work/bare" /bin/candor
[ $name = candor ] || says_why_no_gpu "$work/bare" /bin/candor
good "a story, doctor and serve in a root of $(find "$work/bare" -xdev -type f | wc -l) files"

debootstrap --arch=$debian --variant=minbase --no-check-gpg "$release" "$work/old" "$mirror" >"$work/log" 2>&1 || fail "$(tail -n 2 "$work/log")"
give "$work/old"
mkdir -p "$work/old/usr/lib64"  # every system with rpm has it
files_of "$work/old" >"$work/before"
if [ $name = candor ]; then
  cp "$out"/candor_*_$debian.deb "$work/old/candor.deb"
  chroot "$work/old" dpkg -i /candor.deb >"$work/log" 2>&1 || fail "dpkg: $(cat "$work/log")"
  rm "$work/old/candor.deb"
else
  stands_for_candor "$work/old" "$out"/candor-cuda_*_$debian.deb
  good "candor-cuda takes the place of candor, its keys included"
fi
answers_in "$work/old" /usr/bin/candor
[ "$(stat -c %a "$work/old/etc/candor/keys")" = 600 ] || fail "the key file can be read by others"
good "the .deb on $(. "$work/old/etc/os-release" && echo "$PRETTY_NAME"), glibc $(chroot "$work/old" ldd --version | sed -n '1s/.* //p'), with the same story"
chroot "$work/old" dpkg --purge $name >"$work/log" 2>&1 || fail "dpkg: $(cat "$work/log")"
files_of "$work/old" | diff "$work/before" - ||
  fail "dpkg --purge left something behind"
good "dpkg --purge leaves nothing"

mkdir -p "$work/old/rpmdb"
rpm --root "$work/old" --dbpath /rpmdb --nodeps --ignorearch -i "$out"/candor-*.$cpu.rpm 2>"$work/log" || fail "rpm -i: $(cat "$work/log")"
answers_in "$work/old" /usr/bin/candor
rpm --root "$work/old" --dbpath /rpmdb --nodeps -e $name 2>"$work/log" || fail "rpm -e: $(cat "$work/log")"
rm -r "$work/old/rpmdb"
files_of "$work/old" | diff "$work/before" - ||
  fail "rpm -e left something behind"
good "the .rpm, and rpm -e leaves nothing"

for recipe in "$out"/$name-$cpu.rb "$out"/$name-$cpu.nix; do
  case "$recipe" in
    *.rb) ruby -c "$recipe" >"$work/log" 2>&1 ;;
    *.nix) nix-instantiate --parse "$recipe" >"$work/log" 2>&1 ;;
  esac || fail "$recipe: $(cat "$work/log")"
done
good "the syntax of Homebrew's formula and of Nix's expression"
(cd "$out" && sha256sum --quiet -c SHA256SUMS) && good "SHA256SUMS"
[ -n "$is_native" ] || exit 0

# No network and no rights: a read-only root, a user without a name.
podman_with() {
  podman --root "$work/podman" --runroot "$work/podman-run" --storage-driver vfs --cgroup-manager cgroupfs "$@"
}
podman_with load -q -i "$out"/candor-*-$debian.oci.tar >"$work/log" 2>&1 || fail "podman load: $(cat "$work/log")"
image=$(sed -n 's/^Loaded image: *//p' "$work/log")
good "podman load: $image"
if podman_with run --rm --network none --read-only --cgroups disabled "$image" run "Once upon a time" -n 20 --temperature 0 \
    >"$work/story" 2>"$work/log"; then
  how="run by podman"
else
  # Where no container may run: its files and its user all the same.
  how="its root entered as its user, for podman: $(tail -n 1 "$work/log")"
  inside=$(podman_with image mount "$image")
  mkdir -p "$inside/proc"
  mount --bind "$inside" "$inside"
  mount -o remount,bind,ro "$inside"
  mount -t proc proc "$inside/proc"
  env -i PATH="$PATH" HOME=/tmp chroot --userspec=65532:65532 "$inside" /usr/bin/candor run "Once upon a time" -n 20 --temperature 0 \
    >"$work/story" 2>"$work/log" || true
  umount "$inside/proc"
  umount "$inside"
  podman_with image umount "$image" >/dev/null
fi
cmp -s "$work/story" "$work/first_story" || fail "another story from the image: $(cat "$work/story" "$work/log")"
good "the image tells the same story, read-only ($how)"

mkdir "$work/tar"
tar -xzf "$out"/candor-*.tar.gz -C "$work/tar"
sh "$work"/tar/candor-*/install.sh "$work/prefix" >"$work/log"
"$work/prefix/bin/candor" run "Once upon a time" -n 20 --temperature 0 2>/dev/null | cmp -s - "$work/first_story" || fail "the tarball's story"
cc -std=c99 $(PKG_CONFIG_PATH=$work/prefix/share/pkgconfig pkg-config --cflags candor) \
  "$work/prefix/share/doc/candor/story.c" $(PKG_CONFIG_PATH=$work/prefix/share/pkgconfig pkg-config --libs candor) \
  -Wl,-rpath,"$work/prefix/lib" -o "$work/story_c" || fail "story.c was not built by pkg-config"
"$work/story_c" "$work/prefix/share/candor/models/pocket/pocket-q8_0.gguf" "Once upon a time" | grep -q "Once upon a time.." ||
  fail "story.c tells nothing"
mkdir "$work/consumer"
cp "$work/prefix/share/doc/candor/story.c" "$work/consumer/"
cat >"$work/consumer/CMakeLists.txt" <<'C'
cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(candor 0.1 REQUIRED)
add_executable(story story.c)
target_link_libraries(story PRIVATE candor::candor)
C
cmake -S "$work/consumer" -B "$work/consumer/build" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/consumer/build" >>"$work/log" 2>&1 || fail "a CMake project: $(cat "$work/log")"
good "a C program by pkg-config, and one by find_package(candor)"
sh "$work"/tar/candor-*/install.sh --remove "$work/prefix" >"$work/log"
[ -z "$(find "$work/prefix" -type f 2>/dev/null)" ] || fail "install.sh --remove left something behind"
good "the tarball's install.sh and its --remove"
