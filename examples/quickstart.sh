#!/usr/bin/env bash
# Shows redlatch at work: installs what is missing, builds, starts redis-servers of its own on free ports in a temporary
# directory, and runs quickstart.c on them. Everything it started is gone when it ends.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/packages.sh
. tests/packages.sh
packages_need gcc libc6-dev pkg-config meson ninja-build libhiredis-dev redis-server

echo 'Building (into build/quickstart) ...'
log=$(mktemp)
if ! { [ -e build/quickstart/build.ninja ] || meson setup build/quickstart -Dtests=disabled; } >"$log" 2>&1 ||
    ! meson compile -C build/quickstart >>"$log" 2>&1; then
    cat "$log"
    rm -f "$log"
    exit 1
fi
rm -f "$log"
quickstart=build/quickstart/examples/quickstart

# shellcheck source=tests/fleet/servers.sh
# shellcheck disable=SC2154 # server_pids is set there
. tests/fleet/servers.sh
echo 'Starting 6 redis-servers ...'
servers_start 6 tcp

printf '\n==== One server: %s\n' "${SERVER_URLS[0]}"
"$quickstart" single "${SERVER_URLS[0]}"

five=("${SERVER_URLS[@]:1}")
urls=$(IFS=, && echo "${five[*]}")
printf '\n==== A majority of five independent servers (Redlock)\n\n'
printf '6. All five are up.\n'
"$quickstart" majority "$urls"

printf '\n7. One of the five is killed. The other four are a majority, so nobody notices.\n'
{ kill -9 "${server_pids[5]}" && wait "${server_pids[5]}"; } 2>/dev/null || true
unset 'server_pids[5]'
"$quickstart" majority "$urls"

printf '\nThat was all. The code is examples/quickstart.c; shorter examples are beside it.\n'
