#!/bin/sh
# The install test: run.sh SOURCE BUILD CMAKE CC
#
# Installs the build into a folder, moves that folder, and builds and runs the first example from there, outside the
# source tree: through pkg-config and through find_package, with the shared and the static library.
source=$1 build=$2 cmake=$3 cc=$4
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset CFLAGS LDFLAGS CPATH DESTDIR

# step "what" command ...: one check; its output is shown when it fails.
step() {
    what=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $what: $*"
        sed 's/^/    /' "$work/log"
    fi
}
finish() {
    echo "install: $passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ] && exit 0
    exit 1
}

step "install" "$cmake" --install "$build" --prefix "$work/first"
[ $failed -eq 0 ] || finish
mv "$work/first" "$work/prefix"
prefix=$work/prefix
[ ! -e "$build/cli/modefold" ] || step "the command is installed" test -x "$prefix/bin/modefold"

example=
for file in "$source"/examples/*.c; do
    [ ! -e "$file" ] || { example=$file; break; }
done
if [ -z "$example" ]; then
    echo "skipped: building against the installed library (there is no examples/*.c)"
    skipped=1
    finish
fi
mkdir "$work/stranger"
cp "$example" "$work/stranger/example.c"
cp "$source/tests/install/CMakeLists.txt" "$work/stranger/"
cd "$work/stranger" || exit 1

pc=$(find "$prefix" -name modefold.pc)
libdir=$(dirname "$(dirname "$pc")")
version=$(sed -n 's/^Version: //p' "$pc")
step "the installed manual has the version $version" \
    grep -q "^\.TH MODEFOLD 1 \"\" \"modefold $version\" " "$prefix/share/man/man1/modefold.1"
if command -v pkg-config >/dev/null 2>&1; then
    export PKG_CONFIG_PATH="$libdir/pkgconfig"
    step "pkg-config's version" test "$(pkg-config --modversion modefold)" = "$version"
    # shellcheck disable=SC2046
    step "pkg-config, shared: build" "$cc" -std=c11 example.c -o shared $(pkg-config --cflags --libs modefold) -lm
    step "pkg-config, shared: run" env LD_LIBRARY_PATH="$libdir" ./shared
    # shellcheck disable=SC2046
    step "pkg-config, static: build" "$cc" -std=c11 example.c -o static $(pkg-config --cflags modefold) \
        "$libdir/libmodefold.a" $(pkg-config --static --libs-only-l --libs-only-other modefold |
            sed 's/-lmodefold//g') -lm
    step "pkg-config, static: run" ./static
else
    echo "skipped: pkg-config is not installed"
    skipped=$((skipped + 1))
fi

step "find_package: configure" "$cmake" -S . -B out -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" \
    -DWANTED_VERSION="$version"
step "find_package: build" "$cmake" --build out
step "find_package, shared: run" out/with_shared
step "find_package, static: run" out/with_static
finish
