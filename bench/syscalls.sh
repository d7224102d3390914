#!/usr/bin/env bash
# syscalls.sh - system calls of an uncontended acquire + release on one server and on three, by strace -c.
#
# usage: syscalls.sh CYCLE
#   CYCLE   the built cycle.c
#
# Two runs of different length, and their difference by name of the call: connecting, loading and ending cancel out, and what is
# left is the steady state, exactly. Each run may open one connection to each server.
# Exit: 0 within the limits, 1 above them, 77 skipped with a reason.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
cycle=$1
short=2000 long=12000

# shellcheck source=../tests/fleet/servers.sh
. "$here/../tests/fleet/servers.sh"
command -v strace >/dev/null || skip "strace is not installed"
strace -f -c -o /dev/null true 2>/dev/null || skip "strace is not permitted here"

# connections: what each server has counted so far (asking is one more).
connections() {
    local cli
    for cli in "${SERVER_CLI[@]}"; do
        # shellcheck disable=SC2086 # the address is two words
        redis-cli $cli info stats | sed -n 's/^total_connections_received:\([0-9]*\).*/\1/p'
    done
}

# trace COUNT FILE: runs the cycles under strace; FILE gets "name calls" lines.
trace() {
    local before after
    before=$(connections)
    strace -f -c -o "$2.raw" "$cycle" "$(servers_urls)" "$1" || { echo "FAIL the cycles did not run"; exit 1; }
    after=$(connections)
    # Two each: one of the program, one of the first question.
    if [ "$(paste <(echo "$before") <(echo "$after") | awk '$2 - $1 != 2' | wc -l)" -ne 0 ]; then
        echo "FAIL more than one connection to a server: before ${before//$'\n'/ }, after ${after//$'\n'/ }"
        failed=1
    fi
    awk '$1 ~ /^[0-9.]+$/ && $NF != "total" { print $NF, $4 }' "$2.raw" | sort >"$2"
}

failed=0
# check LIMIT: the table for the servers that run, and the verdict.
check() {
    trace $short "$servers_dir/short"
    trace $long "$servers_dir/long"
    echo "N=${#SERVER_URLS[@]}: system calls a cycle"
    join -a 1 -a 2 -e 0 -o 0,1.2,2.2 "$servers_dir/short" "$servers_dir/long" |
        awk -v cycles=$((long - short)) -v limit="$1" '
            $3 != $2 { printf "  %-16s %8.4f\n", $1, ($3 - $2) / cycles; sum += $3 - $2 }
            END {
                printf "  %-16s %8.4f  (at most %d)\n", "total", sum / cycles, limit
                # To one place: random numbers are drawn in blocks, which is a call in a hundred cycles and not one a cycle.
                exit (sum <= 0 || sprintf("%.1f", sum / cycles) + 0 > limit + 0)
            }' || { echo "FAIL N=${#SERVER_URLS[@]}"; failed=1; }
}

servers_start 1 tcp
check 6
servers_start 2 tcp
check 16
[ $failed -eq 0 ] && echo "ok: within the limits, one connection to a server"
exit $failed
