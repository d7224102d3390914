# shellcheck shell=bash
# packages.sh - sourced by scripts that need programs and libraries which may be missing.
#
#   packages_need NAME...   installs those Debian packages whose content is not there; where it cannot, says which and exits with 1
#   packages_want NAME...   the same, but goes on without those that cannot be had

# package_there NAME: whether what the package brings is there, wherever it came from.
package_there() {
    case $1 in
    libc6-dev) printf '#include <stdio.h>\n' | "${CC:-cc}" -E - ;;
    libcmocka-dev) pkg-config --exists cmocka ;;
    libevent-dev) pkg-config --exists libevent_core ;;
    libclang-rt-*-dev) printf 'int main(void) { return 0; }' | clang -x c -fsanitize=address -o /dev/null - ;;
    liblua5.1-0-dev) pkg-config --exists lua5.1 || pkg-config --exists lua-5.1 || pkg-config --exists lua51 ;;
    libhiredis-dev) pkg-config --exists 'hiredis >= 0.14.0' ;;
    libreadline-dev) [ -e /usr/include/readline/readline.h ] ;;
    postgresql) command -v initdb || ls /usr/lib/postgresql/*/bin/initdb ;;
    ninja-build) command -v ninja ;;
    etcd-server) command -v etcd ;;
    gnuplot-nox) command -v gnuplot ;;
    libmariadb-dev) pkg-config --exists libmariadb ;;
    libpq-dev) pkg-config --exists libpq ;;
    libzookeeper-mt-dev) [ -e /usr/include/zookeeper/zookeeper.h ] ;;
    mariadb-client-core) command -v my_print_defaults ;;
    mariadb-server-core) command -v mariadbd ;;
    zookeeper) [ -e /usr/share/java/zookeeper.jar ] ;;
    redis-server) command -v redis-server && command -v redis-cli ;;
    *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

packages_missing() {
    local name
    for name in "$@"; do
        package_there "$name" || printf '%s ' "$name"
    done
}

# packages_install NAME...: by apt-get, as root or by sudo; no server that comes along is started.
packages_install() {
    local as_root=() policy=/usr/sbin/policy-rc.d own_policy='' status=0 log
    command -v apt-get >/dev/null || { echo "There is no apt-get here."; return 1; }
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "This is not root, and there is no sudo."; return 1; }
        as_root=(sudo)
        [ -t 0 ] || as_root=(sudo -n)
        "${as_root[@]}" true || { echo "sudo does not let us install."; return 1; }
    fi
    echo "Installing: $*"
    log=$(mktemp)
    if [ ! -e "$policy" ]; then
        own_policy=yes
        printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
        "${as_root[@]}" chmod 755 "$policy"
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c '
        apt-get -qq -o DPkg::Lock::Timeout=120 update || echo "The package lists could not be renewed."
        apt-get -qq -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 install --no-install-recommends "$@"
    ' sh "$@" </dev/null >"$log" 2>&1 || status=$?
    [ "$status" = 0 ] || tail -n 20 "$log"
    rm -f "$log"
    [ -z "$own_policy" ] || "${as_root[@]}" rm -f "$policy"
    return "$status"
}

packages_need() {
    local missing
    read -ra missing <<<"$(packages_missing "$@")"
    [ ${#missing[@]} -eq 0 ] && return 0
    packages_install "${missing[@]}" || true
    read -ra missing <<<"$(packages_missing "$@")"
    [ ${#missing[@]} -eq 0 ] && return 0
    echo "Missing, and could not be installed (names of Debian's packages): ${missing[*]}"
    echo "Install them, then run this again:  apt-get install ${missing[*]}"
    exit 1
}

packages_want() {
    local name missing
    read -ra missing <<<"$(packages_missing "$@")"
    [ ${#missing[@]} -eq 0 ] && return 0
    packages_install "${missing[@]}" && return 0
    for name in "${missing[@]}"; do # one that does not exist here must not keep the others away
        packages_install "$name" || echo "Going on without $name."
    done
}
