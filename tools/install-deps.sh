#!/bin/sh
# Installs the Debian and Ubuntu packages that are missing: install-deps.sh demo|check
#
# demo is what the library and the command need; check adds what `make check` uses. Nothing is touched, not even the
# package lists, when nothing is missing. Exit status 1 when something is still missing afterwards.
set_name=${1:-demo}
case $set_name in
demo | check) ;;
*) echo "usage: $0 demo|check"; exit 2 ;;
esac
log=$(mktemp) || exit 1
trap 'rm -f "$log" "$log.c" "$log.out"' EXIT

has() { command -v "$1" >/dev/null 2>&1; }
has_header() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]; }
has_package() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok'; }
has_libc() { has_header stdio.h; }
has_cross_libc() { [ -e /usr/aarch64-linux-gnu/include/stdio.h ]; }
has_numpy() { /usr/bin/python3 -c 'import numpy' 2>/dev/null; } # the one that the tests call
has_qemu() { has qemu-aarch64-static || has qemu-aarch64; }
has_cxx() { has g++; }
has_opencl() { [ -n "$(find /usr/lib /lib /usr/local/lib -name 'libOpenCL.so.1' 2>/dev/null | head -n 1)" ]; }
has_openblas() { [ -n "$(find /usr/lib /usr/local/lib -name 'libopenblas.so.0' 2>/dev/null | head -n 1)" ]; }
has_pocl() { [ -n "$(find /etc/OpenCL/vendors -name 'pocl*.icd' 2>/dev/null)" ]; }
# Whether clang can link the sanitizers that we use: their libraries are in a package of their own.
has_sanitizers() {
    echo 'int main(void) { return 0; }' >"$log.c"
    for kind in address,undefined thread; do
        clang -fsanitize=$kind "$log.c" -o "$log.out" 2>/dev/null || return 1
    done
}

# wants TEST ARGUMENT PACKAGE ...: when the test fails, the first of the packages that exists is needed.
missing=
wants() {
    test_name=$1 argument=$2
    shift 2
    "$test_name" "$argument" && return
    missing="$missing $(echo "$*" | tr ' ' '|')"
}
list_missing() {
    missing=
    wants has gcc gcc
    wants has_libc "" libc6-dev
    wants has make make
    wants has cmake cmake
    wants has pkg-config pkg-config pkgconf
    wants has_header dlpack/dlpack.h libdlpack-dev
    wants has_header stb/stb_image.h libstb-dev
    [ "$set_name" = check ] || return
    wants has_cxx "" g++
    wants has clang clang
    wants has clang-format clang-format
    wants has llvm-symbolizer llvm # without it clang's sanitizers end every output with a warning
    wants has_numpy "" python3-numpy
    wants has nm binutils
    wants has_openblas "" libopenblas0-pthread # a backend of networks, opened at run time
    wants has_opencl "" ocl-icd-libopencl1
    wants has_pocl "" pocl-opencl-icd # an OpenCL device on the CPU, for the tests of src/gpu
    if [ "$(uname -m)" != aarch64 ]; then
        wants has aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
        wants has_cross_libc "" libc6-dev-arm64-cross
        wants has_qemu "" qemu-user-static qemu-user
    fi
    if has clang && ! has_sanitizers; then
        major=$(clang -dumpversion | sed 's/\..*//')
        missing="$missing libclang-rt-$major-dev|libclang-rt-dev|libclang-common-$major-dev"
    fi
}

list_missing
has cppcheck || [ "$set_name" = demo ] || optional=cppcheck
[ -n "$missing$optional" ] || exit 0

# ---- Install --------------------------------------------------------------------------------------------------------

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
tell() {
    [ -n "$missing" ] || exit 0
    echo "$1; please install:$missing"
    exit 1
}
has apt-get || tell "there is no apt-get here (the names below are Debian's)"
[ -z "$as_root" ] || has sudo || tell "not root, and there is no sudo"

apt_get() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 "$@" \
        >"$log" 2>&1 </dev/null
}
# Of each a|b|c the first package that can be installed.
choose() {
    for choice in "$@"; do
        for package in $(echo "$choice" | tr '|' ' '); do
            if apt-cache show "$package" >/dev/null 2>&1 && ! has_package "$package"; then
                echo "$package"
                break
            fi
        done
    done
}
# All at once; when that fails, one by one, so that one bad package does not keep the others out.
install() {
    [ $# -gt 0 ] || return 0
    echo "installing: $*"
    apt_get install -y --no-install-recommends "$@" && return
    for package in "$@"; do
        apt_get install -y --no-install-recommends "$package" || {
            echo "$package was not installed:"
            tail -n 3 "$log"
        }
    done
}

apt_get update || { echo "apt-get update failed:"; tail -n 3 "$log"; }
# Twice: which sanitizer package is right is known only once clang is there.
for _ in 1 2; do
    # shellcheck disable=SC2046,SC2086
    install $(choose $missing $optional)
    optional=
    hash -r
    before=$missing
    list_missing
    [ -n "$missing" ] || exit 0
    [ "$missing" != "$before" ] || break
done
where=
if grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null; then
    where=" (most of these are in Ubuntu's repository universe)"
fi
tell "something is still missing$where"
