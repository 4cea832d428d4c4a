#!/bin/sh
# What the libraries show: check-symbols.sh INCLUDE_DIR libmodefold.so libmodefold.a [nm]
#
# The shared library exports the functions that the headers mark MF_API and nothing else; every global name that the
# static library defines starts with mf_.
include=$1 shared=$2 static=$3 nm=${4:-nm}
export LC_ALL=C
passed=0 failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

cat "$include"/*.h | sed -e '/^[ \t]*#/d' | tr '\n' ' ' | awk '
{
    while ((start = index($0, "/*")) > 0) {
        rest = substr($0, start + 2)
        $0 = substr($0, 1, start - 1) " " substr(rest, index(rest, "*/") + 2)
    }
    count = split($0, statements, ";")
    for (i = 1; i <= count; i++)
        if (sub(/^.*MF_API[ \t]/, "", statements[i])) {
            sub(/[ \t]*\(.*/, "", statements[i])
            sub(/^.*[ \t*]/, "", statements[i])
            print statements[i]
        }
}' | sort >"$work/declared"
[ -s "$work/declared" ] || { echo "the headers in $include declare nothing as MF_API"; failed=$((failed + 1)); }

"$nm" -D --defined-only "$shared" | awk '$2 ~ /^[A-Zuvw]$/ && $3 !~ /^(_init|_fini|_edata|_end|__bss_start)$/ {
    sub(/@.*/, "", $3); print $3 }' | sort >"$work/exported"
if diff "$work/declared" "$work/exported" >"$work/diff"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    sed -n -e 's/^< /declared MF_API but not exported: /p' -e 's/^> /exported but not declared MF_API: /p' "$work/diff"
fi

"$nm" -g --defined-only "$static" | awk 'NF == 3 && $3 !~ /^mf_/ { print $3 }' | sort -u >"$work/foreign"
if [ -s "$work/foreign" ]; then
    failed=$((failed + 1))
    sed 's/^/global without mf_ in the static library: /' "$work/foreign"
else
    passed=$((passed + 1))
fi
echo "symbols: $passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
