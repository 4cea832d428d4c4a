#!/bin/sh
# Sizes, formatting, cppcheck. The last line is "lint: P passed, F failed, S skipped".
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0 skipped=0

# step "what" command ...: one check; its output is shown only when it fails.
step() {
    what=$1
    shift
    if output=$("$@" 2>&1); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $what"
        echo "$output" | head -n 60
    fi
}
skip() {
    echo "skipped: $1"
    skipped=$((skipped + 1))
}

# Every file that clang-format would change, by name; all at once first, which takes a tenth of the time.
formatted() {
    # shellcheck disable=SC2086
    "$formatter" --style=file --dry-run -Werror $files >/dev/null 2>&1 && return 0
    bad=0
    for file in $files; do
        "$formatter" --style=file --dry-run -Werror "$file" >/dev/null 2>&1 || { echo "$file"; bad=1; }
    done
    return $bad
}

step "sizes" tools/size.sh

# The formatter's results differ between its versions; 14 is Debian 12's and Ubuntu 22.04's.
formatter=$(command -v clang-format-14 || command -v clang-format)
version=$([ -z "$formatter" ] || "$formatter" --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
folders=
for folder in include src cli tests bench examples net match; do
    [ ! -d $folder ] || folders="$folders $folder"
done
if [ "$version" = 14 ]; then
    # shellcheck disable=SC2086
    files=$(find $folders -type f \( -name '*.c' -o -name '*.h' -o -name '*.inc' \) | sort)
    step "formatting ($formatter -i FILE ... repairs it)" formatted
else
    skip "formatting (clang-format is ${version:-not installed}, not 14)"
fi

if command -v cppcheck >/dev/null 2>&1; then
    # The instruction sets' files are templates over vector types, which cppcheck 2.10 misreads.
    templates=$(for isa in scalar sse2 avx2 avx512 neon; do printf ' -i %s' src/cpu/*_$isa.c net/*_$isa.c; done)
    # Others than 2.10 (Debian 12's) think that loops over modes may have no turn, and what they fill no value.
    guesses=$(cppcheck --version | grep -q ' 2\.10' || echo --suppress=uninitvar)
    # shellcheck disable=SC2086
    step "cppcheck" timeout 200 cppcheck $templates --quiet --std=c11 --language=c --enable=warning,portability --inline-suppr -j2 \
        --error-exitcode=1 --suppress=missingIncludeSystem --suppress=unmatchedSuppression --suppress=unknownMacro --suppress=arrayIndexOutOfBoundsCond \
        --suppress=preprocessorErrorDirective --suppress=duplicateAssignExpression --suppress=normalCheckLevelMaxBranches $guesses --max-configs=2 \
        -D__x86_64__ -D__GNUC__=12 -DMF_HAVE_X86=1 -I include -I src src cli net
else
    skip "cppcheck (not installed)"
fi

for script in tools/*.sh cmake/*.sh tests/install/*.sh .ci/run; do
    step "syntax of $script" sh -n "$script"
done

echo "lint: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
