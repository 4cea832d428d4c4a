#!/bin/sh
# Everything that must hold on this machine's GPU: gpu-check.sh [BINARY_DIR]
#
# BINARY_DIR (build/release) is a build folder, of which only cli/modefold, tests/test_gpu_*, test_net_gpu,
# test_net_memory and test_net_yolov3 are needed. Runs the tests of src/gpu/ and of networks on a GPU, then `modefold
# verify` on cuda:0, or opencl:0 where that does not open: the files of problems, on CUDA those of 72 MB
# (tests/gpu_large.txt), and GPU_COUNT (20000) random problems in as many processes as there are cores (JOBS), each with
# a seed of its own, from GPU_SEED (1) on. GPU_DEVICE names another device. What is not here is skipped, and said so.
#
# With COMPUTE_SANITIZER (the program, of NVIDIA's toolkit) the files of problems run under its memcheck and racecheck
# too. Every process ends after GPU_SECONDS (3600), so that a kernel that never ends is a failure. A line for every part
# and at the end "gpu-check: P passed, F failed, S skipped". Exit status 1 when anything failed or nothing passed. Logs
# of what failed are printed.
binaries=${1:-build/release}
binaries=$(cd "$binaries" 2>/dev/null && pwd) || { echo "there is no folder ${1:-build/release}"; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd) || exit 2
modefold=$binaries/cli/modefold
[ -x "$modefold" ] || { echo "$modefold is missing: build first"; exit 2; }
JOBS=${JOBS:-$(nproc 2>/dev/null || echo 2)}
GPU_COUNT=${GPU_COUNT:-20000}
GPU_SEED=${GPU_SEED:-1}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
passed=0 failed=0 skipped=0

# What is compiled here is thrown away: nearly every problem has a kernel of its own.
mkdir "$work/pocl"
export MODEFOLD_CACHE="$work/kernels" POCL_CACHE_DIR="$work/pocl" MODEFOLD_SOURCE="$source"
export MODEFOLD_COMMAND="$modefold"

# count WHAT PASSED FAILED SKIPPED [REMARK]
count() {
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    printf '%-28s %8d passed %4d failed %4d skipped  %s\n' "$1" "$2" "$3" "$4" "$5"
}

# ---- The device -----------------------------------------------------------------------------------------------------

device=$GPU_DEVICE
if [ -z "$device" ]; then
    for device in cuda:0 opencl:0 none; do
        "$modefold" info --device $device >"$work/info" 2>&1 && break
        [ $device = none ] || count "$device" 0 0 1 "$(head -n 1 "$work/info")"
    done
fi
if [ "$device" != none ]; then
    "$modefold" info --device "$device" >"$work/info" 2>&1 || { cat "$work/info"; exit 1; }
    sed -n 's/^device *//p' "$work/info"
fi
# PoCL's optimisations cost seconds a kernel and are not what is tested here.
case $device in
opencl:*) export MODEFOLD_OPENCL_OPTIONS="${MODEFOLD_OPENCL_OPTIONS--cl-opt-disable}" ;;
esac

# ---- The tests ------------------------------------------------------------------------------------------------------

# test_gpu_verify is about opencl:0; the problems come below, on the device.
: "${MODEFOLD_GPU_VERIFY_COUNT:=0}"
export MODEFOLD_GPU_VERIFY_COUNT
# They run beside each other, for most of their time goes into compiling kernels; but test_gpu_cuda comes first, alone:
# it takes all memory that there is.
tests=
run_test() {
    mkdir -p "$work/$1"
    (
        cd "$work/$1" || exit 1
        timeout 3600 "$binaries/tests/$1" >"$work/$1.log" 2>&1 </dev/null
        echo $? >"$work/$1.status"
    )
}
for test in "$binaries"/tests/test_gpu_cuda "$binaries"/tests/test_gpu_[!c]* "$binaries"/tests/test_gpu_c[!u]* \
    "$binaries"/tests/test_net_gpu "$binaries"/tests/test_net_memory "$binaries"/tests/test_net_yolov3; do
    [ -f "$test" ] && [ -x "$test" ] || continue
    name=${test##*/}
    tests="$tests $name"
    if [ "$name" = test_gpu_cuda ]; then
        run_test "$name"
    else
        run_test "$name" &
    fi
done
wait
for name in $tests; do
    status=$(cat "$work/$name.status")
    # shellcheck disable=SC2046
    set -- $(tail -n 1 "$work/$name.log" |
        sed -n 's/^.*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    [ $# -eq 3 ] || set -- 0 1 0
    [ "$status" -eq 0 ] || [ "$2" -gt 0 ] || set -- "$1" 1 "$3"
    count "$name" "$1" "$2" "$3"
    grep '^skipped: ' "$work/$name.log" | sed 's/^/    /'
    [ "$2" -eq 0 ] || tail -n 60 "$work/$name.log" | sed 's/^/    /'
done
[ -n "$tests" ] || count "tests" 0 0 1 "there is no $binaries/tests/test_gpu_*"

# ---- Problems -------------------------------------------------------------------------------------------------------

# count_verify WHAT LOG STATUS: a verify that says no count has failed.
count_verify() {
    problems=$(sed -n 's/^\([0-9,]*\) problems\{0,1\}; compared with the reference.*/\1/p' "$2" | tr -d ,)
    differences=$(sed -n 's/^.*, \([0-9]*\) differences\{0,1\}, .*/\1/p' "$2")
    if [ -z "$problems" ] || [ -z "$differences" ] || { [ "$3" -ne 0 ] && [ "$differences" -eq 0 ]; }; then
        count "$1" 0 1 0 "exit status $3"
        tail -n 40 "$2" | sed 's/^/    /'
        return
    fi
    count "$1" $((problems - differences)) "$differences" 0
    [ "$differences" -eq 0 ] || head -n 60 "$2" | sed 's/^/    /'
}

# count_parts WHAT REMARK: the parts of the files of problems as one line, the logs of those that found something.
count_parts() {
    good=0 bad=0
    for lines in "$work"/part.??; do
        status=$(cat "$lines.status")
        problems=$(sed -n 's/^\([0-9,]*\) problems\{0,1\}; compared with the reference.*/\1/p' "$lines.log" | tr -d ,)
        differences=$(sed -n 's/^.*, \([0-9]*\) differences\{0,1\}, .*/\1/p' "$lines.log")
        if [ -n "$problems" ] && [ "$status" -eq 0 ]; then
            good=$((good + problems))
            continue
        fi
        : "${problems:=0}" "${differences:=0}"
        [ "$differences" -gt 0 ] || differences=1
        [ "$problems" -ge "$differences" ] || problems=$differences
        good=$((good + problems - differences)) bad=$((bad + differences))
        echo "    exit status $status:"
        if [ "$status" -eq 99 ]; then grep '^=========' "$lines.log"; else cat "$lines.log"; fi |
            head -n 40 | sed 's/^/    /'
    done
    count "$1" $good $bad 0 "$2"
}

# verify_parts [TOOL...]: the parts of the files of problems beside each other, under a tool or not.
verify_parts() {
    for lines in "$work"/part.??; do
        (
            timeout -k 5 "${GPU_SECONDS:-3600}" "$@" "$modefold" verify --device "$device" --file "$lines" \
                >"$lines.log" 2>&1
            echo $? >"$lines.status"
        ) &
    done
    wait
}

if [ "$device" = none ]; then
    count "problems" 0 0 1 "no GPU opens"
else
    grep -hvE '^(#|$)' "$source/tests/gpu_problems.txt" "$source/tests/problems.txt" >"$work/lines" ||
        count "files of problems" 0 0 1 "$source/tests is not here"
    # Their time goes into compiling kernels, so a part for every core; the sanitizer's tools find them in the cache.
    split -n "r/$JOBS" "$work/lines" "$work/part."
    for tool in verify ${COMPUTE_SANITIZER:+memcheck racecheck}; do
        [ -s "$work/lines" ] || break
        began=$(date +%s)
        set --
        [ "$tool" = verify ] || set -- "$COMPUTE_SANITIZER" --tool "$tool" --error-exitcode 99 --print-limit 5
        verify_parts "$@"
        count_parts "files of problems, $tool" "$(($(date +%s) - began)) s"
    done
    rm -f "$work"/part.*
    case $device in
    cuda:*)
        began=$(date +%s)
        if grep -vE '^(#|$)' "$source/tests/gpu_large.txt" >"$work/lines"; then
            split -n "r/$JOBS" "$work/lines" "$work/part."
            verify_parts
            count_parts "large problems" "$(($(date +%s) - began)) s"
        else
            count "large problems" 0 0 1 "$source/tests is not here"
        fi
        ;;
    *) count "large problems" 0 0 1 "they are for cuda" ;;
    esac
    share=$(((GPU_COUNT + JOBS - 1) / JOBS)) job=0 began=$(date +%s)
    while [ $job -lt "$JOBS" ] && [ "$GPU_COUNT" -gt 0 ]; do
        (
            MODEFOLD_CACHE=off timeout -k 5 "${GPU_SECONDS:-3600}" "$modefold" verify --device "$device" --count $share \
                --seed $((GPU_SEED + job)) >"$work/random.$job" 2>&1
            echo $? >"$work/status.$job"
        ) &
        job=$((job + 1))
    done
    wait
    job=0
    while [ $job -lt "$JOBS" ] && [ "$GPU_COUNT" -gt 0 ]; do
        count_verify "random, seed $((GPU_SEED + job))" "$work/random.$job" "$(cat "$work/status.$job")"
        job=$((job + 1))
    done
    echo "random problems took $(($(date +%s) - began)) s"
fi

echo "gpu-check: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
