#!/usr/bin/env bash
# The examples do on real servers what their first lines say, and tell failures by their exit status.
# usage: examples.sh SINGLE REDLOCK RENEWING_WORKER [EVENT_LOOP [HTTP_SERVICE]]
set -euo pipefail
single=$1 redlock=$2 renewing_worker=$3 event_loop=${4:-} http_service=${5:-}
# shellcheck source=tests/fleet/servers.sh
. "$(dirname "$0")/fleet/servers.sh"
servers_start 3 tcp

fails() {
    if "$@"; then
        echo "should have failed: $*"
        exit 1
    fi
}

lose_server() {
    { kill -9 "${server_pids[$1]}" && wait "${server_pids[$1]}"; } 2>/dev/null || true
    unset "server_pids[$1]"
}

"$single" "${SERVER_URLS[0]}" first
# shellcheck disable=SC2086 # the address is two words
redis-cli ${SERVER_CLI[0]} set rl:held somebody >"$servers_dir/out"
fails timeout 20 "$single" "${SERVER_URLS[0]}" held
fails "$single" http://127.0.0.1 first

if [ -n "$event_loop" ]; then
    "$event_loop" "$(servers_urls)" looped
    fails "$event_loop" http://127.0.0.1 looped
fi

# http_get PORT WORD: waits until the service there answers with this word.
http_get() {
    local line
    for _ in $(seq 100); do
        line=
        { exec 3<>"/dev/tcp/127.0.0.1/$1" && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && line=$(tr -d '\r' <&3); } 2>/dev/null || true
        case $line in *"$2"*) return 0 ;; esac
        sleep 0.1
    done
    echo "no '$2' from port $1, but: $line"
    exit 1
}

# http_start: starts one instance on a free port; sets $pid and $port.
http_start() {
    for _ in 1 2 3 4 5 6 7 8; do
        port=$((20000 + RANDOM % 12000))
        "$http_service" "$port" "$(servers_urls)" >"$servers_dir/http-$port" &
        pid=$!
        server_pids+=("$pid") # to be ended with the others, if this script fails
        for _ in $(seq 100); do
            grep -q http "$servers_dir/http-$port" && return 0
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.05
        done
    done
    echo 'http_service does not start'
    exit 1
}

if [ -n "$http_service" ]; then
    http_start
    first=$pid first_port=$port
    http_get "$first_port" 'holding yes'
    http_start
    http_get "$port" 'holding no'
    kill "$first"
    wait "$first"
    http_get "$port" 'holding yes'
    kill "$pid"
    wait "$pid"
fi

# Ten parts are two leases. Then the lock is deleted in the middle: the worker stops.
"$renewing_worker" "$(servers_urls)" kept 10
"$renewing_worker" "$(servers_urls)" deleted 50 >"$servers_dir/worker" 2>&1 &
worker=$!
server_pids+=("$worker")
sleep 0.5
for i in 0 1 2; do
    # shellcheck disable=SC2086 # the address is two words
    redis-cli ${SERVER_CLI[i]} del rl:deleted >"$servers_dir/out"
done
fails wait "$worker"
grep -q 'stopped: too few servers still know it' "$servers_dir/worker"

"$redlock" "${SERVER_URLS[@]}"
lose_server 0
"$redlock" "${SERVER_URLS[@]}"
lose_server 1
fails "$redlock" "${SERVER_URLS[@]}"
echo 'all examples behave'
