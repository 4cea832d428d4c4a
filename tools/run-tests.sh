#!/bin/sh
# What `make check` runs: run-tests.sh [stage ...], by default all of them.
#
#   gcc      Release build with gcc, all tests             asan     all tests under ASan and UBSan (clang)
#   clang    Release build with clang, all tests           tsan     the threaded tests under ThreadSanitizer (clang)
#   aarch64  cross build, the portable tests under qemu    install  the installed library in a stranger's project
#   lint     tools/lint.sh                                 fuzz [S] the fuzz targets for S seconds together
#
# One line a stage, the log of what failed, and at the end "N passed, N failed, N skipped" over everything.
# Exit status 1 when anything failed or nothing passed. Logs stay in build/logs.
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL CFLAGS LDFLAGS CC
JOBS=${JOBS:-2}
logs=$PWD/build/logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0

# ---- Counting -------------------------------------------------------------------------------------------------------

# count STAGE PASSED FAILED SKIPPED [remark]: adds to the totals and prints the stage's line.
count() {
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    printf '%-8s %8d passed %4d failed %4d skipped  %4d s  %s\n' "$1" "$2" "$3" "$4" $(($(date +%s) - began)) "$5"
}

# show FILE: a log's first and last lines, indented, so that no line of it is mistaken for ours.
show() {
    awk '{ line[NR] = $0 }
        END {
            for (i = 1; i <= NR; i++)
                if (i <= 40 || i > NR - 20)
                    print "    " line[i]
                else if (i == 41)
                    print "    ... " NR - 60 " lines left out"
        }' "$1"
}

# needs STAGE COMMAND ...: false, and counted as skipped, when a command is missing.
needs() {
    stage=$1
    shift
    for needed in "$@"; do
        if ! command -v "$needed" >/dev/null 2>&1; then
            count "$stage" 0 0 1 "$needed is not installed"
            return 1
        fi
    done
}

# ---- Building and running -------------------------------------------------------------------------------------------

# build STAGE PRESET [cmake --build arguments]: false, and counted as one failure, when it does not build.
build() {
    stage=$1 preset=$2
    shift 2
    if cmake --preset "$preset" >"$logs/$stage.log" 2>&1 &&
        cmake --build "build/$preset" -j "$JOBS" "$@" >>"$logs/$stage.log" 2>&1; then
        return 0
    fi
    count "$stage" 0 1 0 "does not build, see build/logs/$stage.log:"
    grep -A 4 -E 'error:|Error|undefined reference|multiple definition' "$logs/$stage.log" >"$logs/errors" ||
        cp "$logs/$stage.log" "$logs/errors"
    show "$logs/errors"
    return 1
}

# run_tests STAGE PRESET [ctest arguments]: a test that left no count has failed.
run_tests() {
    stage=$1 preset=$2
    shift 2
    results=$PWD/build/$preset/results
    tests=$(cd "build/$preset" && ctest -N "$@" | sed -n 's/^ *Test *#[0-9]*: //p')
    if [ -z "$tests" ]; then
        count "$stage" 0 0 1 "no such tests"
        return
    fi
    for name in $tests; do
        rm -f "$results/$name.count" "$results/$name.log"
    done
    (cd "build/$preset" && ctest -j "$JOBS" "$@") >>"$logs/$stage.log" 2>&1
    stage_passed=0 stage_failed=0 stage_skipped=0 bad=
    for name in $tests; do
        p=0 f=1 s=0
        [ ! -r "$results/$name.count" ] || read -r p f s <"$results/$name.count"
        stage_passed=$((stage_passed + p)) stage_failed=$((stage_failed + f)) stage_skipped=$((stage_skipped + s))
        [ "$f" -eq 0 ] || bad="$bad $name"
    done
    # shellcheck disable=SC2086
    count "$stage" $stage_passed $stage_failed $stage_skipped "$(set -- $tests && echo $#) programs"
    for name in $bad; do
        echo "  $stage: $name"
        if [ -r "$results/$name.log" ]; then
            show "$results/$name.log"
        else
            echo "    did not run, see build/logs/$stage.log"
        fi
    done
}

# ---- The stages -----------------------------------------------------------------------------------------------------

# Random problems on a GPU's engine are many here, few in the other stages, which find the kernels compiled here on
# disk, PoCL's and NVRTC's: both caches compare the whole text, and it is the same text. The files' problems on it run
# all in the first stage, and a third each, another one, where another compiler made the library around them.
POCL_CACHE_DIR=$PWD/build/gpu-kernels/pocl
MODEFOLD_TEST_KERNELS=$PWD/build/gpu-kernels/cuda
export POCL_CACHE_DIR MODEFOLD_TEST_KERNELS
mkdir -p "$POCL_CACHE_DIR" "$MODEFOLD_TEST_KERNELS"
stage_gcc() {
    rm -rf "$POCL_CACHE_DIR" "$MODEFOLD_TEST_KERNELS"
    mkdir -p "$POCL_CACHE_DIR" "$MODEFOLD_TEST_KERNELS"
    needs gcc cmake gcc && build gcc gcc &&
        MODEFOLD_GPU_VERIFY_COUNT=${MODEFOLD_GPU_VERIFY_COUNT:-2000} \
            MODEFOLD_GPU_MATCH_COUNT=${MODEFOLD_GPU_MATCH_COUNT:-1000} run_tests gcc gcc -LE install
}
stage_install() {
    needs install cmake gcc && build install gcc && run_tests install gcc -L install
}
stage_clang() {
    needs clang cmake clang && build clang clang &&
        MODEFOLD_GPU_VERIFY_EVERY=3 MODEFOLD_GPU_VERIFY_FROM=1 run_tests clang clang -LE install
}
stage_asan() {
    needs asan cmake clang && build asan asan &&
        MODEFOLD_GPU_VERIFY_EVERY=3 MODEFOLD_GPU_VERIFY_FROM=2 run_tests asan asan
}
stage_tsan() {
    needs tsan cmake clang && build tsan tsan --target threaded_tests && run_tests tsan tsan -L threaded
}
stage_aarch64() {
    if [ "$(uname -m)" = aarch64 ]; then
        count aarch64 0 0 1 "this is the machine's own processor"
        return
    fi
    command -v qemu-aarch64 >/dev/null 2>&1 || needs aarch64 qemu-aarch64-static || return
    needs aarch64 cmake aarch64-linux-gnu-gcc && build aarch64 aarch64 --target portable_tests &&
        run_tests aarch64 aarch64 -L portable
}
stage_lint() {
    tools/lint.sh >"$logs/lint.log" 2>&1
    lint_status=$?
    # shellcheck disable=SC2046
    set -- $(tail -n 1 "$logs/lint.log" | sed -n 's/^lint: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    [ $# -eq 3 ] || set -- 0 1 0
    count lint "$1" "$2" "$3" "$(sed -n 's/^skipped: /skipped: /p' "$logs/lint.log" | tr '\n' ' ')"
    [ $lint_status -eq 0 ] || show "$logs/lint.log"
}
# The seconds are shared out between the targets; what they find stays in build/fuzz/found.
stage_fuzz() {
    needs fuzz cmake clang && build fuzz fuzz || return
    set -- "${1:-60}" build/fuzz/fuzzers/fuzz_*
    seconds=$1
    shift
    if [ ! -x "$1" ]; then
        count fuzz 0 0 1 "there is no tests/fuzz/fuzz_*.c"
        return
    fi
    share=$((seconds / $#))
    [ $share -gt 0 ] || share=1
    mkdir -p build/fuzz/found
    for target in "$@"; do
        began=$(date +%s)
        name=${target##*/}
        corpus=build/fuzz/corpus/$name
        mkdir -p "$corpus"
        seeds=tests/fuzz/corpus/$name
        [ -d "$seeds" ] || seeds=
        # shellcheck disable=SC2086
        if "$target" -max_total_time=$share -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
            -artifact_prefix=build/fuzz/found/ "$corpus" $seeds >"$logs/$name.log" 2>&1; then
            count fuzz 1 0 0 "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$logs/$name.log") runs"
        else
            count fuzz 0 1 0 "$name, see build/logs/$name.log:"
            show "$logs/$name.log"
        fi
    done
}

if [ "$1" = fuzz ]; then
    began=$(date +%s)
    stage_fuzz "$2"
else
    [ $# -gt 0 ] || set -- gcc asan tsan clang aarch64 install lint
    for wanted in "$@"; do
        began=$(date +%s)
        case $wanted in
        gcc | asan | tsan | clang | aarch64 | install | lint) "stage_$wanted" ;;
        *) count "$wanted" 0 1 0 "there is no such stage" ;;
        esac
    done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
