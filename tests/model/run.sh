#!/usr/bin/env bash
# Has spin search the models beside this script exhaustively: what holds must end without an error, and each planted fault must be
# found. Prints a table of verdicts and state counts; exits with 1 if a verdict is not the expected one, with 77 if spin is missing.
# usage: run.sh [DIRECTORY]      for what is generated; by default a temporary one
set -euo pipefail
models=$(realpath "$(dirname "$0")")
for tool in spin gcc; do
    command -v "$tool" >/dev/null || { echo "SKIP: $tool is not installed"; exit 77; }
done
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    work=$(realpath "$1")
    end() { :; }
else
    work=$(mktemp -d)
    end() { rm -rf "$work"; }
fi
runs=()
trap '[ ${#runs[@]} = 0 ] || kill "${runs[@]}" 2>/dev/null || true; end' EXIT

# Expected verdict, model, its options; the long ones first.
searches=(
    'holds fence -DFORGET'
    'holds lease'
    'holds fence'
    'fault fence -DNO_CONFIRM'
    'fault fence -DNO_COMPARE'
    'fault fence -DLATE_COUNTS'
    'fault fence -DEARLY_TOP_UP'
    'fault fence -DBOTH'
    'fault fence -DFORGET -DNO_SEED'
    'fault fence -DFORGET -DSKEW'
    'fault lease -DREPLY_TIME'
    'fault lease -DNO_DRIFT'
    'fault lease -DREACHABLE'
    'fault lease -DPAUSE'
)

# search I: what pan says goes to I/out. Memory is limited by -DMEMLIM (MB), the depth of the search by -m.
search() {
    local model options
    mkdir -p "$work/$1"
    cd "$work/$1"
    read -r _ model options <<<"${searches[$1]}"
    # shellcheck disable=SC2086 # words
    spin -a $options "$models/$model.pml" >spin.out
    gcc -O1 -DSAFETY -DCOLLAPSE -DMEMLIM=3000 -w -o pan pan.c
    exec ./pan -E -m200000 -n >out 2>&1
}

# verdict I: holds, fault (an assertion was violated), or unfinished (of time, memory or depth there was too little).
verdict() {
    local out=$work/$1/out
    if grep -q 'assertion violated' "$out" 2>/dev/null; then
        echo fault
    elif grep -q 'errors: 0$' "$out" 2>/dev/null && ! grep -qE 'Search not completed|max search depth too small' "$out"; then
        echo holds
    else
        echo unfinished
    fi
}

for i in "${!searches[@]}"; do
    [ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n || true # its verdict tells how it went
    search "$i" &
    runs+=($!)
done
wait

failed=0
printf '%-28s %-10s %-10s %10s\n' model expected verdict states
for i in "${!searches[@]}"; do
    read -r expected name <<<"${searches[$i]}"
    found=$(verdict "$i")
    states=$(sed -nE 's/^ *([0-9.e+]+) states, stored.*/\1/p' "$work/$i/out" 2>/dev/null || true)
    printf '%-28s %-10s %-10s %10.0f\n' "$name" "$expected" "$found" "${states:-0}"
    if [ "$found" != "$expected" ]; then
        failed=$((failed + 1))
        tail -n 20 "$work/$i/spin.out" "$work/$i/out" || true
    fi
done
[ "$failed" = 0 ] || { echo "$failed of ${#searches[@]} searches did not end as expected"; exit 1; }
echo "${#searches[@]} searches ended as expected"
