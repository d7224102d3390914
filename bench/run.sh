#!/usr/bin/env bash
# Measures redlatch against the raw limit in every scenario, and prints each goal as "id, goal, measured, met or short".
#
# usage: bench/run.sh [OPTION]... [SCENARIO]...     the options of redlatch-bench, which prints them on --help; --quick for a look
#
# The servers are those of bench/compose.yaml where all six answer, else redis-servers of its own. Where bench/peers/run.py is there,
# it compares other libraries afterwards.
# Exit: 0 all gates are kept, 1 one is missed or something failed, 77 skipped with a reason.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/packages.sh
. tests/packages.sh
packages_need gcc libc6-dev pkg-config meson ninja-build libhiredis-dev libevent-dev libcmocka-dev redis-server
packages_want strace

mkdir -p build/log
if ! { [ -e build/bench/build.ninja ] || meson setup build/bench --buildtype=release -Dbench=true -Dtests=disabled -Dexamples=false; } \
    >build/log/bench-build.log 2>&1 || ! meson compile -C build/bench >>build/log/bench-build.log 2>&1; then
    cat build/log/bench-build.log
    exit 1
fi

# containers: the URLs of bench/compose.yaml, if a server answers at each.
containers() {
    local port all=()
    for port in 6390 6391 6392 6393 6394 6395; do
        [ "$(timeout 2 redis-cli -p $port ping 2>/dev/null)" = PONG ] || return 1
        all+=("redis://127.0.0.1:$port")
    done
    (IFS=, && echo "${all[*]}")
}

options=()
if urls=$(containers); then
    echo "servers: the containers of bench/compose.yaml"
    options+=("--urls=$urls" "--core=${CORE:-0}")
else
    echo "servers: $(redis-server --version | cut -d' ' -f1-3), private"
fi
echo "machine: $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"

status=0
build/bench/bench/redlatch-bench "${options[@]}" "$@" || status=$?
[ "$status" != 77 ] || exit 77

if [ -e bench/peers/run.py ]; then
    peers=0
    printf '\n==== peers\n'
    case " $* " in
    *' --quick '*) python3 bench/peers/run.py --quick || peers=$? ;;
    *) python3 bench/peers/run.py || peers=$? ;;
    esac
    [ "$peers" = 0 ] || [ "$peers" = 77 ] || status=1
else
    echo 'P7   not measured: bench/peers is not here'
fi
exit "$status"
