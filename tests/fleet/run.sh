#!/usr/bin/env bash
# run.sh - the mixed fleet: redlatch, npm's redlock (versions 5 and 4, over ioredis) and redis-py's Lock contend for one key with
# an empty prefix, on one redis-server and (without redis-py, whose Lock knows one server only) on three.
#
# usage: run.sh WORKER CACHE-DIR
#   WORKER      the built worker.c
#   CACHE-DIR   where the npm and pip packages are kept between runs; outside the source tree
#   FLEET_SECONDS=n   length of each round (default 5)
#
# Each contender raises a shared counter under the lock, not atomically, and prints how many sections it claims. A round passes if
# the counter equals their sum, every contender had turns, and no server holds the key afterwards. First a control round, in which
# one contender ignores the lock, has to lose updates: else the test could not see any.
# Exit: 0 passed, 1 failed, 77 skipped with a reason.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || { sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 2; }
worker=$(realpath "$1") || exit 2
cache=$(mkdir -p "$2" && realpath "$2") || exit 2
seconds=${FLEET_SECONDS:-5}
key=fleet:invoice-42

npm_packages=(redlock@5.0.0-beta.2 redlock4@npm:redlock@4.2.0 ioredis@5.11.1)
pip_packages=(redis==8.1.0)

# shellcheck source=servers.sh
. "$here/servers.sh"
command -v node >/dev/null || skip "node is not installed"
command -v npm >/dev/null || skip "npm is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"

# fetch DIR STAMP COMMAND...: runs the command once for this stamp; its output is shown only if it fails.
fetch() {
    local dir=$1 stamp
    stamp=$dir/.installed-$(tr -c "a-zA-Z0-9.\n" - <<<"$2")
    shift 2
    [ -e "$stamp" ] && return 0
    rm -rf "$dir" && mkdir -p "$dir"
    (cd "$dir" && timeout 120 "$@") >"$dir/log" 2>&1 && touch "$stamp" && return 0
    tail -n 5 "$dir/log"
    return 1
}

fetch "$cache/npm" "${npm_packages[*]}" npm install --prefix . --no-audit --no-fund --no-package-lock --ignore-scripts \
    --fetch-retries=1 "${npm_packages[@]}" || skip "npm cannot install ${npm_packages[*]}"
fetch "$cache/pip" "${pip_packages[*]}" python3 -m pip install --quiet --no-input --disable-pip-version-check --retries 1 \
    --target . "${pip_packages[@]}" || skip "python3 -m pip cannot install ${pip_packages[*]} (Debian: python3-pip)"
export NODE_PATH=$cache/npm/node_modules PYTHONPATH=$cache/pip PYTHONDONTWRITEBYTECODE=1

# contend NAME KIND URLS COUNTER SECONDS: one contender of the round.
contend() {
    case $2 in
    ours) "$worker" "$1" "$3" "$key" "$4" "$5" ;;
    unlocked) "$worker" "$1" "$3" "$key" "$4" "$5" unlocked ;;
    node4 | node5) node "$here/worker.js" "$1" "${2#node}" "$3" "$key" "$4" "$5" ;;
    python) python3 "$here/worker.py" "$1" "$3" "$key" "$4" "$5" ;;
    esac
}

# run_round LABEL URLS SECONDS KIND...: sets $sum (claimed sections), $counter and $bad (what failed besides).
run_round() {
    local label=$1 urls=$2 length=$3 kind pids=() n=0 i
    shift 3
    local out=$servers_dir/$label
    mkdir "$out"
    printf '%020d' 0 >"$out/counter"
    for kind in "$@"; do
        n=$((n + 1))
        contend "$kind-$n" "$kind" "$urls" "$out/counter" "$length" >"$out/$n" 2>"$out/$n.err" &
        pids+=($!)
    done
    sum=0 bad=
    for i in $(seq $n); do
        wait "${pids[i - 1]}" || bad+=" contender $i failed: $(tail -n 3 "$out/$i.err");"
        local name="" sections=0
        read -r name sections <"$out/$i"
        [ "${sections:-0}" -gt 0 ] || bad+=" contender $i had no turn;"
        sum=$((sum + ${sections:-0}))
        echo "  ${name:-contender $i}: ${sections:-0} sections"
    done
    counter=$((10#$(cat "$out/counter")))
    echo "  $label: counter $counter, claimed sections $sum"
}

failed=0
# judge LABEL URLS KIND...: a real round, and its verdict.
judge() {
    local label=$1 urls=$2 cli
    shift 2
    run_round "$label" "$urls" "$seconds" "$@"
    [ "$counter" -eq "$sum" ] || bad+=" $((sum - counter)) updates lost;"
    for cli in "${SERVER_CLI[@]}"; do
        # shellcheck disable=SC2086 # the address is two words
        [ "$(redis-cli $cli exists "$key")" = 0 ] || bad+=" the key is left on $cli;"
    done
    if [ -n "$bad" ]; then
        echo "FAIL $label:$bad"
        failed=1
    else
        echo "ok $label"
    fi
}

servers_start 1 unix
run_round control "$(servers_urls)" 1 ours node5 unlocked
[ "$counter" -lt "$sum" ] || { echo "FAIL control: a contender without the lock lost no update"; failed=1; }
judge one-server "$(servers_urls)" ours ours node5 node5 node4 python python
servers_start 2 unix
judge three-servers "$(servers_urls)" ours ours node5 node5 node4
exit $failed
