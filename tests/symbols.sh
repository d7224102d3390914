#!/bin/sh
# What the libraries show to the linker: the shared one exactly the functions of its header, which are those of its map; the
# static one, to which visibility means nothing, only names that begin with rl_ or rli_.
# usage: symbols.sh HEADER MAP SHARED [STATIC]
set -eu
header=$1 map=$2 shared=$3 archive=${4:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

grep -E '^RL_API ' "$header" | grep -oE '\brl_[a-z0-9_]+\(' | tr -d '(' | sort >"$dir/header"
grep -oE '\brl_[a-z0-9_]+;' "$map" | tr -d ';' | sort >"$dir/map"
nm -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$dir/shared"
[ -s "$dir/header" ] || { echo "no function found in $header"; exit 1; }

same() { # A B TEXT
    diff "$dir/$1" "$dir/$2" || { echo "$3"; failed=1; }
}
same header map "the header (<) and the map (>) differ"
same header shared "the header (<) and the shared library (>) differ"

if grep -vE '^rl_' "$dir/shared"; then
    echo 'exported without the prefix rl_'
    failed=1
fi
if [ -n "$archive" ] && nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | grep -vE '^rli?_'; then
    echo "global in $archive without the prefix rl_ or rli_"
    failed=1
fi
[ "$failed" = 0 ] && echo "$(wc -l <"$dir/shared") functions"
exit "$failed"
