#!/bin/sh
# A seed gives the same world, to the last bit of its transcript: in another process, at other addresses, and whatever seeds were run
# before it.
#
# usage: replay.sh SIM
set -eu
sim=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

first=1 last=20
"$sim" -v "$first" $((last - first + 1)) | grep -v 'none failed' >"$dir/together"
for run in one two; do
    for seed in $(seq "$first" "$last"); do
        "$sim" -v "$seed" | grep -v 'none failed'
    done >"$dir/$run"
done
[ "$(wc -l <"$dir/together")" -gt 1000 ] || { echo 'There is no transcript.'; exit 1; }
cmp "$dir/one" "$dir/two"
cmp "$dir/one" "$dir/together"
echo "$((last - first + 1)) seeds, $(wc -l <"$dir/one") lines, the same three times"
