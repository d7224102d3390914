#!/bin/sh
# What the libraries show to the linker: the shared ones together exactly the functions of the headers, which are those of their
# maps, and the private ones that one of them has for the other; the static ones, to which visibility means nothing, only names
# that begin with rl_ or rli_.
# usage: symbols.sh HEADER... -- MAP... -- SHARED... -- [STATIC...]
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

kind=header
for arg in "$@"; do
    if [ "$arg" = -- ]; then
        case $kind in header) kind=map ;; map) kind=shared ;; shared) kind=static ;; esac
        continue
    fi
    case $kind in
    header) tr '\n' ' ' <"$arg" | grep -oE 'RL_API [^;]*;' | grep -oE '\brl_[a-z0-9_]+\(' | tr -d '(' >>"$dir/headers" ;;
    map) grep -oE '\brli?_[a-z0-9_]+;' "$arg" | tr -d ';' >>"$dir/maps" ;;
    shared) nm -D --defined-only "$arg" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' >>"$dir/exported" ;;
    static)
        if nm -g --defined-only "$arg" | awk 'NF == 3 { print $3 }' | grep -vE '^rli?_'; then
            echo "global in $arg without the prefix rl_ or rli_"
            failed=1
        fi
        ;;
    esac
done
[ -s "$dir/headers" ] || { echo 'no function found in the headers'; exit 1; }

same() { # A B TEXT
    sort "$dir/$1" >"$dir/a"
    sort "$dir/$2" >"$dir/b"
    diff "$dir/a" "$dir/b" || { echo "$3"; failed=1; }
}
same maps exported 'the maps (<) and the shared libraries (>) differ'
grep '^rl_' "$dir/exported" >"$dir/public"
same headers public 'the headers (<) and the shared libraries (>) differ'
[ "$failed" = 0 ] && echo "$(wc -l <"$dir/public") functions"
exit "$failed"
