#!/usr/bin/env bash
# Plays the failure that fencing is for (demo.c) on a redis-server of its own, in a temporary directory.
# usage: run.sh [DEMO]      (the demo, if it is built already)
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
demo=${1:-$root/build/quickstart/examples/fencing/demo}
if [ $# = 0 ]; then
    # shellcheck source=tests/packages.sh
    . "$root/tests/packages.sh"
    packages_need gcc libc6-dev pkg-config meson ninja-build libhiredis-dev redis-server
    echo 'Building (into build/quickstart) ...'
    [ -e "$root/build/quickstart/build.ninja" ] || meson setup "$root/build/quickstart" "$root" -Dtests=disabled >/dev/null
    meson compile -C "$root/build/quickstart" >/dev/null
fi
demo=$(realpath "$demo")
# shellcheck source=tests/fleet/servers.sh
. "$root/tests/fleet/servers.sh"
servers_start 1 unix
timeout 90 "$demo" "${SERVER_URLS[0]}" "${SERVER_URLS[0]#unix://}"
