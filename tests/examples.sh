#!/usr/bin/env bash
# The examples do on real servers what their first lines say, and tell failures by their exit status.
# usage: examples.sh SINGLE REDLOCK
set -euo pipefail
single=$1 redlock=$2
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

"$redlock" "${SERVER_URLS[@]}"
lose_server 0
"$redlock" "${SERVER_URLS[@]}"
lose_server 1
fails "$redlock" "${SERVER_URLS[@]}"
echo 'all examples behave'
