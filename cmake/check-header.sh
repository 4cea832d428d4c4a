#!/bin/sh
# The public headers alone, in other people's dialects: check-header.sh INCLUDE_DIR DLPACK_DIR CC
include=$1 dlpack=$2 cc=$3
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# Twice, for the include guard; a second file, for definitions that would clash.
printf '#include <modefold_match.h>\n#include <modefold_net.h>\n#include <modefold.h>\n#include <modefold_match.h>\n#include <modefold_net.h>\nint main(void) { return 0; }\n' >"$work/one.c"
printf '#include <modefold.h>\n#include <modefold_net.h>\nint two(void);\nint two(void) { return MF_VERSION_MAJOR; }\n' >"$work/two.c"
cp "$work/one.c" "$work/one.cc"
cp "$work/two.c" "$work/two.cc"
# Asking for the system's own folder by -isystem would break C++'s include_next.
case $dlpack in
/usr/include) dlpack= ;;
*) dlpack="-isystem $dlpack" ;;
esac

compiles() {
    suffix=$1
    shift
    if ! command -v "$1" >/dev/null 2>&1; then
        echo "skipped: $* (no such compiler)"
        skipped=$((skipped + 1))
    elif "$@" -Wall -Wextra -Werror -I "$include" $dlpack "$work/one.$suffix" "$work/two.$suffix" -o "$work/out"; then
        passed=$((passed + 1))
    else
        echo "failed: $*"
        failed=$((failed + 1))
    fi
}
compiles c "$cc" -std=c99 -pedantic
compiles c "$cc" -std=c11 -pedantic
compiles c "$cc" -std=gnu11 -Wconversion -Wshadow -Wstrict-prototypes
compiles cc g++ -std=c++11 -pedantic
compiles cc clang++ -std=c++11 -pedantic
echo "header: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
