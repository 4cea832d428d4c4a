#!/bin/sh
# Runs one test: run-one.sh RESULTS NAME counted|plain SECONDS COMMAND ...
#
# The command runs in a new folder with a cache folder of its own. RESULTS/NAME.log gets its output, RESULTS/NAME.count
# gets "passed failed skipped". A counted test must end in "...: P passed, F failed, S skipped"; a plain one counts as
# one, and exit status 77 says that it was skipped. A crash or a timeout is a failure, whatever was counted before.
results=$1 name=$2 kind=$3 seconds=$4
shift 4
work=$results/$name.dir
log=$results/$name.log
rm -rf "$work" "$results/$name.count"
mkdir -p "$work" && cd "$work" || exit 1
XDG_CACHE_HOME=$work/.cache timeout -k 10 "$seconds" "$@" >"$log" 2>&1 </dev/null
status=$?
tail -n 200 "$log"

counts=$(tail -n 1 "$log" | sed -n 's/^.*: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
if [ -z "$counts" ] && [ "$kind" = counted ]; then
    counts="0 0 0"
    [ $status -ne 0 ] || { status=1; echo "$name: the last line counts nothing" | tee -a "$log"; }
elif [ -z "$counts" ]; then
    case $status in
    0) counts="1 0 0" ;;
    77) counts="0 0 1" status=0 ;;
    *) counts="0 1 0" ;;
    esac
fi
# shellcheck disable=SC2086
set -- $counts
if [ $status -ne 0 ] && [ "$2" -eq 0 ]; then
    set -- "$1" 1 "$3"
fi
case $status in
0) ;;
124 | 137) echo "$name: stopped after $seconds s" | tee -a "$log" ;;
*) echo "$name: exit status $status" | tee -a "$log" ;;
esac
cd "$results" || exit 1
echo "$1 $2 $3" >"$name.count.tmp" && mv "$name.count.tmp" "$name.count"
[ "$2" -eq 0 ] || exit 1
rm -rf "$work"
