#!/usr/bin/env bash
# Builds and tests in a Debian 13 root: newer compiler, meson, hiredis, redis, and valkey.
#
# usage: tests/debian13.sh [--prepare] [MESON-TEST-ARGUMENT...]
#   --prepare   only makes the root
#
# The root is made by debootstrap in .roots/trixie and kept for the next run. It gets its packages from where this system's apt
# gets its own. Everything runs in namespaces of its own for mounts and processes, so nothing stays mounted or running.
# Needs root. Exit: 0 passed, 1 failed, 77 skipped, with the reason in the last line. Meson's results are in
# .roots/trixie/build/meson-logs/run-*.json.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD/.roots/trixie
packages=gcc,libc6-dev,meson,ninja-build,pkg-config,libhiredis-dev,libevent-dev,libcmocka-dev,liblua5.1-0-dev,redis-server,valkey-server
suites=(--suite unit --suite sim --suite support --suite real --suite event --suite threads --suite hostile)

skip() {
    echo "$1"
    exit 77
}

# Where this system's apt has Debian's main archive from.
mirror() {
    # The format is apt's.
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v release="$(. /etc/os-release && echo "$VERSION_CODENAME")" \
            '$1 ~ /^https?:/ && $1 !~ /security/ && $2 == release && $3 == "main" { print $1; exit }'
}

# debootstrap fetches with wget, which knows nothing of apt's settings.
apt_setting() {
    local value
    eval "$(apt-config shell value "$1")"
    echo "${value:-}"
}

make_root() {
    local from proxy authorities keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    command -v debootstrap >/dev/null || skip 'debootstrap is not installed'
    [ -e "$keyring" ] || skip 'the package debian-archive-keyring is not installed'
    from=$(mirror)
    [ -n "$from" ] || skip "apt's configuration names no Debian archive"
    proxy=$(apt_setting Acquire::http::Proxy)
    [ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy=$proxy
    proxy=$(apt_setting Acquire::https::Proxy)
    [ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export https_proxy=$proxy
    authorities=$(apt_setting Acquire::https::CAInfo)
    if [ -n "$authorities" ]; then
        echo "ca_certificate = $authorities" >"$root.wgetrc"
        export WGETRC=$root.wgetrc
    fi

    rm -rf "$root"
    echo "Making a Debian 13 root in .roots/trixie ..."
    if ! debootstrap --variant=minbase --keyring="$keyring" --include="$packages" trixie "$root" "$from" >"$root.log" 2>&1; then
        tail -n 20 "$root.log"
        skip 'debootstrap could not make the root'
    fi
    rm -rf "$root"/var/cache/apt/archives/*.deb
    printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n' >"$root/etc/hosts"
    mkdir -p "$root/source" "$root/build"
    echo "$packages" >"$root/complete"
}

# in_root COMMAND...: runs it in the root, with this tree under /source. What is mounted and started goes with the namespaces.
in_root() {
    # The inner shell expands them.
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child bash -euc '
        root=$1 source=$2
        shift 2
        mount --make-rprivate /
        mount --bind "$source" "$root/source"
        mount -o remount,ro,bind "$root/source"
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin HOME=/root LC_ALL=C.UTF-8 TMPDIR=/tmp "$@"
    ' bash "$root" "$PWD" "$@"
}

only_prepare=no
if [ "${1:-}" = --prepare ]; then
    only_prepare=yes
    shift
fi
[ "$(id -u)" = 0 ] || skip 'a Debian 13 root needs root'
unshare --mount --pid --fork true 2>/dev/null || skip 'this machine allows no namespaces'
mkdir -p .roots
exec 9>.roots/lock
flock 9
if [ "$(cat "$root/complete" 2>/dev/null)" != "$packages" ]; then
    make_root
fi
[ "$only_prepare" = no ] || exit 0

rm -rf "$root"/build/meson-logs/run-*
in_root sh -euc '
    if [ ! -e /build/build.ninja ]; then meson setup /build /source; fi
    meson compile -C /build
'
status=0
for server in redis-server valkey-server; do
    echo "==== on $server"
    in_root env RL_TEST_SERVER=$server meson test -C /build --no-rebuild --print-errorlogs --num-processes 3 --logbase "run-$server" \
        "${suites[@]}" "$@" || status=1
    suites=(--suite support --suite real --suite event --suite threads --suite hostile) # the unit tests and the simulation know no server
done
exit "$status"
