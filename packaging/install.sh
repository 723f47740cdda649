#!/bin/sh
# Installs nmem for this user: curl -fsSL https://github.com/nmem-dev/nmem/releases/latest/download/install.sh | sh
#   NMEM_BIN       where the program goes [default: ~/.local/bin]
#   NMEM_DOWNLOAD  where the archives are [default: the newest release]
# Nothing but the program is written. To remove it: nmem uninstall, then delete the program. The database stays.
set -eu

main() {
  from=${NMEM_DOWNLOAD:-https://github.com/nmem-dev/nmem/releases/latest/download}
  bin=${NMEM_BIN:-$HOME/.local/bin}
  case "$(uname -s)" in
    Linux) system=unknown-linux-musl ;;
    Darwin) system=apple-darwin ;;
    *) fail "there is no archive for $(uname -s); on Windows run install.ps1" ;;
  esac
  case "$(uname -m)" in
    x86_64 | amd64) machine=x86_64 ;;
    arm64 | aarch64) machine=aarch64 ;;
    *) fail "there is no archive for $(uname -m); build it from source with cargo" ;;
  esac
  archive=nmem-$machine-$system.tar.gz
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  fetch "$from/$archive" "$work/$archive"
  fetch "$from/SHA256SUMS" "$work/SHA256SUMS"
  wanted=$(sed -n "s/^\([0-9a-f]*\)  $archive\$/\1/p" "$work/SHA256SUMS")
  [ -n "$wanted" ] || fail "SHA256SUMS does not name $archive"
  [ "$(sum "$work/$archive")" = "$wanted" ] || fail "$archive is not what SHA256SUMS says; nothing was installed"
  tar -C "$work" -xzf "$work/$archive"
  mkdir -p "$bin"
  [ ! -d "$bin/nmem" ] || fail "$bin/nmem is a folder"
  new=$(mktemp "$bin/nmem.XXXXXX")
  cp "$work/${archive%.tar.gz}/nmem" "$new"
  chmod 755 "$new"
  version=$("$new" --version) || { rm -f "$new"; fail "the program does not run here; nothing was installed"; }
  # Renamed into place: a hook that runs meanwhile keeps its own file.
  mv -f "$new" "$bin/nmem"
  echo "Installed $version in $bin"
  case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "$bin is not on PATH: add it in your shell's settings" ;;
  esac
  echo 'Next: nmem demo, then nmem install --found --dry-run'
}

fetch() {
  if command -v curl >/dev/null; then
    curl -fsSL --retry 2 -o "$2" "$1"
  elif command -v wget >/dev/null; then
    wget -qO "$2" "$1"
  else
    fail "curl or wget is needed"
  fi || fail "cannot download $1"
}

sum() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

fail() {
  echo "nmem: $1" >&2
  exit 1
}

# A download that is cut off runs nothing.
main
