#!/usr/bin/env bash
# install.sh - installs what the comparison runs against, from the ordinary registries, and builds the workers.
#
# usage: bench/peers/install.sh [PART...]
#   PART   c node python go java rust systems redis-plus-plus; default: all
#   REDIS_PLUS_PLUS=DIR    a source tree of redis-plus-plus, which is in no registry; else it is skipped
#
# Everything but Debian's packages goes to build/peers. What cannot be had is skipped with a reason, which build/peers/skipped-PART keeps
# for run.py. Exit: 0 also then; 1 if redlatch itself cannot be built.
set -uo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C.UTF-8
# shellcheck source=tests/packages.sh
. tests/packages.sh
here=$PWD/bench/peers
out=$PWD/build/peers
mkdir -p "$out"

npm_packages=(redlock@5.0.0-beta.2 redlock4@npm:redlock@4.2.0 ioredis@5.11.1)
pip_packages=(redis==8.1.0 pottery==3.0.1 python-redis-lock==4.0.1)

# part NAME COMMAND...: runs it in a process of its own with its output in a log; the last line of a failure is the reason.
part() {
    local name=$1
    shift
    rm -f "$out/skipped-$name"
    (set -e; "$@") >"$out/install-$name.log" 2>&1 </dev/null &
    if wait $!; then # in the background, or `set -e` would not hold in it
        echo "installed: $name"
    else
        tail -n 1 "$out/install-$name.log" >"$out/skipped-$name"
        echo "skipped: $name: $(cat "$out/skipped-$name")"
    fi
}

need() {
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || { echo "$name is not installed"; return 1; }
    done
}

# As options of meson; `meson setup` of a directory that is there already reconfigures it.
build_c() {
    local again=()
    [ ! -e "$out/c/build.ninja" ] || again=(--reconfigure)
    meson setup "$out/c" "${again[@]}" --buildtype=release -Dbench=true -Dexamples=false -Dtests=disabled
    meson compile -C "$out/c"
}

build_node() {
    need node npm
    mkdir -p "$out/npm"
    npm install --prefix "$out/npm" --no-audit --no-fund --no-package-lock --ignore-scripts "${npm_packages[@]}"
}

build_python() {
    need python3
    rm -rf "$out/pip"
    python3 -m pip install --no-input --disable-pip-version-check --target "$out/pip" "${pip_packages[@]}"
}

build_go() {
    need go
    local name
    cd "$here/go"
    for name in redsync redislock rueidislock etcd; do
        go build -o "$out/go/$name" worker.go "$name.go"
    done
}

build_java() {
    need java javac mvn
    mvn -q -B -f "$here/java/pom.xml" dependency:copy-dependencies -DoutputDirectory="$out/java"
    javac -d "$out/java" -cp "$out/java/*" "$here/java/RedissonWorker.java"
}

# In a copy, since cargo writes its lock file beside the manifest.
build_rust() {
    need cargo
    mkdir -p "$out/rust"
    cp "$here"/rust/* "$out/rust/"
    cd "$out/rust"
    cargo build --release --target-dir target
}

build_redis_plus_plus() {
    local source=${REDIS_PLUS_PLUS:-}
    [ -n "$source" ] || { echo 'it is in no registry: give its source tree as REDIS_PLUS_PLUS=DIR'; return 1; }
    need cmake g++
    cmake -S "$source" -B "$out/redispp/build" -DCMAKE_BUILD_TYPE=Release -DREDIS_PLUS_PLUS_BUILD_TEST=OFF \
        -DREDIS_PLUS_PLUS_BUILD_SHARED=OFF -DCMAKE_INSTALL_PREFIX="$out/redispp" -DCMAKE_INSTALL_LIBDIR=lib
    cmake --build "$out/redispp/build" -j 2
    cmake --install "$out/redispp/build"
    gcc -O2 -D_GNU_SOURCE -c -o "$out/redispp/worker.o" "$here/worker.c"
    g++ -O2 -std=c++17 -I"$out/redispp/include" -o "$out/redispp/worker" "$here/redispp.cpp" "$out/redispp/worker.o" \
        "$out/redispp/lib/libredis++.a" -lhiredis -pthread
}

# Each system by itself: one that cannot be had must not keep the others away. They are run by run.py; nothing is started here.
install_systems() {
    packages_want postgresql etcd-server mariadb-server-core mariadb-client-core zookeeper gnuplot-nox \
        libpq-dev libmariadb-dev libzookeeper-mt-dev
}

wanted=("$@")
[ $# -gt 0 ] || wanted=(systems c node python go java rust redis-plus-plus)
packages_need gcc libc6-dev pkg-config meson ninja-build libhiredis-dev libevent-dev libcmocka-dev redis-server
for name in "${wanted[@]}"; do
    case $name in
    systems) part systems install_systems ;;
    c) part c build_c ;;
    node) part node build_node ;;
    python) part python build_python ;;
    go) part go build_go ;;
    java) part java build_java ;;
    rust) part rust build_rust ;;
    redis-plus-plus) part redis-plus-plus build_redis_plus_plus ;;
    *) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit 2 ;;
    esac
done
[ -x "$out/c/bench/peers/peer_redlatch" ]
