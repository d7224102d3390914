#!/usr/bin/env bash
# The test of the simulation: the bugs of this directory are planted one by one into a copy of lib/, and each must be found.
#
# usage: run.sh DIRECTORY [NAME...]
#   Builds in DIRECTORY; only the bugs NAME..., if given. Prints for each the seeds that it took, and what was seen; this is also left
#   in DIRECTORY/table.
#   Exit: 0 all found, 1 one was not found or no longer applies, 77 skipped.
#
# A bug is a patch whose first line tells what it is. One that no longer applies, because lib/ has changed, has to be made anew.
set -euo pipefail
cd "$(dirname "$0")/../.."
most_seeds=10000
jobs=$(nproc)

die() {
    echo "$*" >&2
    exit 1
}

skip() {
    echo "SKIP: $*"
    exit 77
}

# build NAME: the simulation over the library in $out/NAME/lib. Without assertions: the simulation is to find it by itself.
build() {
    local dir=$out/$1 file
    local -a sources=()
    for file in "$dir"/lib/*.c; do
        case ${file##*/} in
        port.c | sock.c | poll_driver.c | blocking.c | event.c) ;;
        *) sources+=("$file") ;;
        esac
    done
    "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -DNDEBUG -DRL_VERSION_STRING='"0"' -iquote "$dir/lib" -iquote tests/sim -Iinclude \
        "${cflags[@]}" "${sources[@]}" tests/sim/*.c -o "$dir/sim" "${libs[@]}" -pthread
}

# try NAME: plants the bug and looks for it; leaves a line "SEEDS NAME: WORDS" in $out/NAME/found.
try() {
    local name=$1 dir=$out/$1 what said status=0
    rm -rf "$dir"
    mkdir -p "$dir"
    cp -r lib "$dir/lib"
    if ! patch -s -p1 --fuzz=0 -d "$dir" <"tests/mutations/$name.patch" >"$dir/log" 2>&1; then
        cat "$dir/log"
        die "$name.patch no longer applies"
    fi
    build "$name" || die "$name does not compile"
    # A bug may also show by a crash.
    said=$(timeout 100 "$dir/sim" 1 "$most_seeds" 2>&1) || status=$?
    what=$(sed -n 's/^seed \([0-9]*\) failed: /\1 /p' <<<"$said")
    case $status in 0 | 124) what="- NOT FOUND" ;; esac
    [ -n "$what" ] || what="? ended with status $status"
    printf '%-22s %6s  %s\n' "$name" "${what%% *}" "${what#* }" >"$dir/found"
}

[ $# -ge 1 ] || die "usage: run.sh DIRECTORY [NAME...]"
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
command -v patch >/dev/null || skip 'patch is not installed'
for lua in lua5.1 lua-5.1 lua51 ''; do
    [ -n "$lua" ] || skip 'Lua 5.1 is not installed'
    ! pkg-config --exists "$lua" || break
done
read -ra cflags <<<"$(pkg-config --cflags "$lua" hiredis)"
read -ra libs <<<"$(pkg-config --libs "$lua" hiredis)"
names=("$@")
if [ ${#names[@]} = 0 ]; then
    for patch in tests/mutations/*.patch; do
        names+=("$(basename "$patch" .patch)")
    done
fi

for name in "${names[@]}"; do
    rm -f "$out/$name/found"
done
running=0
for name in "${names[@]}"; do
    [ "$running" -lt "$jobs" ] || { wait -n || true; running=$((running - 1)); }
    (try "$name") &
    running=$((running + 1))
done
wait || true

failed=0
printf '%-22s %6s  %s\n' bug seeds 'what the simulation saw' >"$out/table"
for name in "${names[@]}"; do
    if [ -e "$out/$name/found" ]; then
        cat "$out/$name/found"
    else
        printf '%-22s %6s  %s\n' "$name" - 'COULD NOT BE TRIED'
    fi
done >>"$out/table"
failed=$(grep -cE ' (NOT FOUND|COULD NOT BE TRIED)$' "$out/table" || true)
echo "$((${#names[@]} - failed)) of ${#names[@]} bugs found within $most_seeds seeds" >>"$out/table"
cat "$out/table"
[ "$failed" = 0 ]
