#!/usr/bin/env bash
# Plays the failure that fencing is for (demo.c) on a redis-server of its own, in a temporary directory.
# usage: run.sh DEMO      (the built demo, for example build/default/examples/fencing/demo)
set -euo pipefail
[ $# = 1 ] || { sed -n '2,/^set/s/^# //p' "$0"; exit 2; }
demo=$(realpath "$1")
# shellcheck source=tests/fleet/servers.sh
. "$(dirname "$0")/../../tests/fleet/servers.sh"
servers_start 1 unix
timeout 90 "$demo" "${SERVER_URLS[0]}" "${SERVER_URLS[0]#unix://}"
