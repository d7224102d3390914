# shellcheck shell=bash
# servers.sh - sourced by scripts that need private redis-servers: starts them in a temp dir and takes all away at exit.
#
#   servers_start N unix|tcp    starts N more; their URLs are added to the array SERVER_URLS and their redis-cli addresses to SERVER_CLI
#   servers_urls                prints the URLs, separated by commas
#   servers_dir                 the temp dir (also for files of the caller)
#
# It sets a trap on EXIT. Where redis-server or redis-cli is missing the script ends with 77: skipped.

skip() {
    echo "SKIP: $*"
    exit 77
}

command -v redis-server >/dev/null || skip "redis-server is not installed"
command -v redis-cli >/dev/null || skip "redis-cli is not installed (Debian: redis-tools)"

SERVER_URLS=()
SERVER_CLI=()
server_pids=()
servers_dir=$(mktemp -d "${TMPDIR:-/tmp}/redlatch.XXXXXX")

servers_stop() {
    [ ${#server_pids[@]} -eq 0 ] || kill -9 "${server_pids[@]}" 2>/dev/null
    rm -rf "$servers_dir"
}
trap servers_stop EXIT

servers_urls() {
    local IFS=,
    echo "${SERVER_URLS[*]}"
}

# server_answers PID CLI-ARGUMENTS...: whether this very process answers there (a port may belong to somebody else).
server_answers() {
    local pid=$1
    shift
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || return 1
        redis-cli "$@" info server 2>/dev/null | grep -q "^process_id:$pid"$'\r' && return 0
        sleep 0.05
    done
    return 1
}

server_start_one() {
    local kind=$1 port path pid
    for _ in 1 2 3 4 5 6 7 8; do
        path=$servers_dir/s$((${#server_pids[@]} + 1)).sock
        port=0
        [ "$kind" = unix ] || port=$((20000 + RANDOM % 12000))
        redis-server --bind 127.0.0.1 --port $port --unixsocket "$path" --dir "$servers_dir" --save '' --appendonly no \
            --loglevel warning >"$path.log" 2>&1 &
        pid=$!
        disown # else the shell reports it as killed
        local cli="-s $path" url="unix://$path"
        [ "$kind" = unix ] || { cli="-p $port" url="redis://127.0.0.1:$port"; }
        # shellcheck disable=SC2086 # the address is two words
        if server_answers "$pid" $cli; then
            server_pids+=("$pid") SERVER_CLI+=("$cli") SERVER_URLS+=("$url")
            return 0
        fi
        kill -9 "$pid" 2>/dev/null
    done
    echo "cannot start a redis-server:"
    cat "$path.log"
    exit 1
}

servers_start() {
    for _ in $(seq "$1"); do
        server_start_one "$2"
    done
}
