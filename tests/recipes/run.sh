#!/usr/bin/env bash
# The recipes of examples/fencing against the real thing: a stale holder's writes are refused, and what the newer one wrote stays.
# usage: run.sh FENCED_FILE      (the program)
# A recipe whose server or tool is not installed is skipped; the exit status is 77 if that leaves none but the file.
set -euo pipefail
fenced_file=$(realpath "$1")
recipes=$(realpath "$(dirname "$0")/../../examples/fencing")
work=$(mktemp -d "${TMPDIR:-/tmp}/redlatch.XXXXXX")
as_user=()
cluster=
end() {
    [ -z "$cluster" ] || "${as_user[@]}" "$cluster/pg_ctl" -D "$work/pg/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap end EXIT

# section FILE NAME: a part of a recipe, as it is shipped.
section() {
    awk -v name="$2" '/^-- \[/ { inside = ($2 == "[" name "]") } inside' "$recipes/$1"
}

# ---- Each recipe: NAME_begin TOKEN HOLDER prints what it reads; NAME_write TOKEN HOLDER VALUE; NAME_value. Both fail if refused. ----

file_begin() {
    "$fenced_file" begin "$work/invoice-42" "$1" "$2"
}
file_write() {
    printf '%s' "$3" | "$fenced_file" write "$work/invoice-42" "$1" "$2"
}
file_value() {
    cat "$work/invoice-42"
}
file_setup() {
    printf 100 >"$work/invoice-42"
}

# lite SECTION TOKEN HOLDER VALUE
lite() {
    local out=$work/out.$BASHPID
    {
        printf '.timeout 10000\n.parameter init\n'
        printf ".parameter set :resource \"'invoice-42'\"\n.parameter set :token %s\n" "$2"
        printf ".parameter set :holder \"'%s'\"\n.parameter set :balance %s\n" "$3" "${4:-0}"
        section sqlite.sql "$1"
    } | sqlite3 "$work/lite.db" >"$out" || true
    cat "$out"
    [ -s "$out" ]
}
sqlite_begin() { lite begin "$@"; }
sqlite_write() { [ "$(lite write "$@")" = written ]; }
sqlite_value() {
    sqlite3 "$work/lite.db" 'SELECT balance FROM account'
}
sqlite_setup() {
    section sqlite.sql schema | sqlite3 "$work/lite.db"
}

pg() {
    psql -X -q -A -t -v ON_ERROR_STOP=1 -h "$work/pg" -U postgres "$@" postgres
}
# post SECTION TOKEN HOLDER VALUE
post() {
    section postgresql.sql "$1" |
        pg -v resource=invoice-42 -v "token=$2" -v "holder=$3" -v "balance=${4:-0}" | grep . || [ "${PIPESTATUS[1]}" = 0 ]
}
postgresql_begin() { post begin "$@"; }
postgresql_write() { post write "$@"; }
postgresql_value() {
    pg -c 'SELECT balance FROM account'
}
# A private cluster on a unix socket. Its programs refuse to run as root.
postgresql_setup() {
    mkdir "$work/pg"
    if [ "$(id -u)" = 0 ]; then
        as_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
        chmod 755 "$work"
        chown nobody:nogroup "$work/pg"
    fi
    cd "$work/pg"
    "${as_user[@]}" "$1/initdb" -D "$work/pg/data" -U postgres -A trust -E UTF8 --locale=C -N >"$work/log" 2>&1 || {
        cat "$work/log"
        return 1
    }
    cluster=$1
    "${as_user[@]}" "$1/pg_ctl" -D "$work/pg/data" -w -t 60 -l "$work/pg/log" \
        -o "-c listen_addresses='' -k '$work/pg' -c fsync=off" start >"$work/log" 2>&1 || {
        cat "$work/log" "$work/pg/log"
        return 1
    }
    section postgresql.sql schema | pg
}
postgresql_programs() {
    local dir
    for dir in "$(dirname "$(realpath "$(command -v initdb || echo /nowhere/initdb)")")" /usr/lib/postgresql/*/bin; do
        if [ -x "$dir/initdb" ] && [ -x "$dir/pg_ctl" ]; then
            echo "$dir"
            return
        fi
    done
    return 1
}

# ---- What each must do ----------------------------------------------------------------------------------------------------------

is() {
    [ "$1" = "$2" ] || { echo "$recipe: $3: $1 instead of $2"; exit 1; }
}
refused() {
    if "${recipe}_$1" "${@:2}" >"$work/said" 2>&1; then
        echo "$recipe: should have been refused: $*"
        exit 1
    fi
    is "$("${recipe}_value")" "$value" "after a refused $*"
}
accepted() {
    "${recipe}_write" "$@" >"$work/said" 2>&1 || { cat "$work/said"; echo "$recipe: refused: $*"; exit 1; }
    value=$3
    is "$("${recipe}_value")" "$value" "after $*"
}

# try RECIPE
try() {
    recipe=$1 value=100
    local a=9007199254740001 b=9007199254740002 c=9007199254740003
    refused begin 0 anna
    refused write 0 anna 1
    is "$("${recipe}_begin" $a anna)" 100 'A reads'
    is "$("${recipe}_begin" $b bert)" 100 'B reads'
    refused write $a anna 110 # before B wrote
    accepted $b bert 150
    refused write $a anna 110 # after it
    refused begin $a anna
    refused write $b carl 110 # a token belongs to one holder
    refused write 0 bert 110
    accepted $b bert 160 # the holder may write again
    accepted $c carl 170 # a newer one, even without having begun
    refused write $b bert 180
    is "$("${recipe}_begin" $c carl)" 170 'C reads'
    echo "$recipe: the stale writers were refused"
}

# race RECIPE ROUNDS: four writers at the same time, each of which writes its token: the highest must be what stays.
race() {
    recipe=$1
    local token highest=9007199254740500 writers
    for _ in $(seq "$2"); do
        writers=()
        for token in $((highest + 3)) $((highest + 1)) $((highest + 4)) $((highest + 2)); do
            "${recipe}_write" "$token" "holder-$token" "$token" >"$work/said.$token" 2>&1 & # refused, or not
            writers+=($!)
        done
        highest=$((highest + 4))
        wait "${writers[@]}" || true
        is "$("${recipe}_value")" "$highest" 'after a race'
    done
    echo "$recipe: of writers at the same time the highest token stayed"
}

# A writer that was stopped within its write, and goes on after a newer one was there.
stopped_file_writer() {
    local pid
    mkfifo "$work/stdin"
    "$fenced_file" write "$work/invoice-42" 9007199254740004 dora <"$work/stdin" 2>"$work/said" &
    pid=$!
    exec 3>"$work/stdin"
    kill -STOP "$pid"
    printf 180 >&3
    exec 3>&-
    accepted 9007199254740005 emil 190
    kill -CONT "$pid"
    if wait "$pid"; then
        echo 'file: the writer that was stopped wrote'
        exit 1
    fi
    is "$(file_value)" 190 'after the writer that was stopped'
    echo 'file: the writer that was stopped was refused'
}

file_setup
try file
stopped_file_writer
race file 100

others=0
if command -v sqlite3 >/dev/null; then
    sqlite_setup
    try sqlite
    race sqlite 5
    others=$((others + 1))
else
    echo 'sqlite: skipped: sqlite3 is not installed'
fi
if programs=$(postgresql_programs) && command -v psql >/dev/null; then
    postgresql_setup "$programs"
    try postgresql
    race postgresql 5
    others=$((others + 1))
else
    echo 'postgresql: skipped: it is not installed'
fi
[ "$others" -gt 0 ] || { echo 'SKIP: neither sqlite3 nor PostgreSQL is installed'; exit 77; }
