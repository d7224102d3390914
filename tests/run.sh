#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests.
#
# usage: tests/run.sh                   the core suites, built with the default compiler
#        tests/run.sh --all             every stage (core as coverage, which runs the same)
#        tests/run.sh [--all] STAGE...  only these
#        tests/run.sh --list            the stages
#
# What a stage prints goes to build/log/STAGE.log; the end of it is shown if the stage fails. The exit status is 0 only if nothing
# failed; the last line tells the counts.
#
# To add a stage: write stage_NAME, and give its name, its usual seconds on two cores and what it does to the table below.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8
# shellcheck source=tests/packages.sh
. tests/packages.sh

stages=(
    'builds     60 gcc and clang, warnings as errors; rules, format, headers, symbols; install, and programs outside the tree'
    'core       60 unit tests, real servers, libevent, threads, hostile servers'
    'coverage   60 the same, with the line coverage of lib/'
    'asan       80 the same, under the address and undefined behaviour sanitizers'
    'tsan       40 the threaded tests under the thread sanitizer'
    'valgrind   90 unit tests and real servers under valgrind'
    'examples   40 the quick start, the examples and the recipes, on servers of their own'
    'bench      50 the figures that are promised: system calls, latency against raw hiredis, fence, a stopped node, a crowd of waiters'
    'sim       100 100,000 simulated worlds in which what can go wrong does'
    'mutations  60 bugs planted in the library, each of which the simulation must find'
    'fuzz       60 URLs, structs, tokens and servers that are made of any bytes, under the sanitizers'
    'storm      60 real servers and processes stopped, killed and cut off at random: no two holders at any time'
    'model      60 the fence and the lease, searched exhaustively by spin; planted faults must be found'
    'fleet      60 other lock libraries contend with this one'
    'debian13  220 the functional tests in a Debian 13 root, on redis and on valkey'
)
plain_stages=(core fleet)
core_packages=(gcc libc6-dev pkg-config meson ninja-build libhiredis-dev libevent-dev libcmocka-dev redis-server)
wanted_packages=(liblua5.1-0-dev) # there are skips without them
all_packages=(clang libclang-rt-14-dev g++ make patch libreadline-dev valgrind gcovr clang-format strace debootstrap spin sqlite3 postgresql)
# Tests with real servers wait most of the time: three fit on two cores.
core_suites=(--num-processes 3 --suite unit --suite sim --suite support --suite real --suite event --suite sweeps --suite threads --suite hostile)
min_line_coverage=90

# ---- What a stage may use ----------------------------------------------------------------------------------------------------

# build NAME OPTION...: configures build/NAME and builds it.
build() {
    local dir=build/$1
    shift
    if [ ! -e "$dir/build.ninja" ] || [ "$(cat "$dir/options" 2>/dev/null)" != "$*" ]; then
        rm -rf "$dir"
        meson setup "$dir" "$@"
        echo "$*" >"$dir/options"
    fi
    meson compile -C "$dir"
}

# build_main: the build that most stages share, in build/$main_build.
build_main() {
    if [ "$all" = yes ]; then
        main_build=ci
        build ci --prefix="$PWD/build/prefix" --libdir=lib -Dwerror=true
    else
        main_build=default
        build default
    fi
}

build_release() {
    build release --buildtype=release -Dwerror=true -Dbench=true
}

# run_tests NAME ARGUMENT...: meson test in build/NAME, under $wrapper; its results are counted.
wrapper=()
run_tests() {
    local dir=build/$1 log=$stage-$RANDOM status=0
    shift
    "${wrapper[@]}" meson test -C "$dir" --no-rebuild --print-errorlogs --logbase "$log" "$@" || status=$?
    count_results "$dir/meson-logs/$log"*.json
    return "$status"
}

# count_results FILE...: adds up meson's logs of results (one JSON object a line). To have run no test is a failure.
count_results() {
    local results
    results=$(sed -nE 's/.*"result": "([A-Z]+)".*/\1/p' "$@" || true)
    [ -n "$results" ] || { echo 'No test was run.'; return 1; }
    sed -E 's/^(OK|EXPECTEDFAIL)$/passed/; s/^SKIP$/skipped/; s/^[A-Z]+$/failed/' <<<"$results" >>"$counts"
    { grep -ohE '\[  PASSED  \] [0-9]+ test' "$@" || true; } | awk '{ print "cases " $4 }' >>"$counts"
    sed -nE '/"result": "SKIP"/{
        s/.*"name": "([^"]+)".*(SKIP|skipped): *([^"\\]*).*/skipped: \1: \3/
        s/.*"name": "([^"]+)".*/skipped: \1/
        p
    }' "$@" >>"$notes"
}

# passed TEXT: counts one check of a stage that is no meson test. (A check that fails ends the stage.)
passed() {
    echo "ok: $1"
    echo passed >>"$counts"
}

# skip REASON: ends the stage as skipped.
skip() {
    echo "skipped: $1" | tee -a "$notes"
    exit 77
}

need_command() {
    command -v "$1" >/dev/null || skip "$1 is not installed"
}

# ---- Stages -------------------------------------------------------------------------------------------------------------------

stage_builds() {
    build_main
    outside_the_tree
    if command -v clang >/dev/null; then
        CC=clang build clang -Dwerror=true
        passed 'clang'
    else
        echo 'skipped: clang is not installed' | tee -a "$notes"
    fi
    build_release
    passed 'release'
    build without-event -Devent=disabled -Dwerror=true
    passed 'without libevent'
    either_library
    run_tests "$main_build" --suite tree
}

# Programs that know the installed library by pkg-config alone.
outside_the_tree() (
    outside=build/outside prefix=$PWD/build/prefix
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
    rm -rf "$prefix" "$outside"
    meson install -C "build/$main_build" --no-rebuild --quiet
    cp -r examples/outside "$outside"
    cd "$outside"
    make CFLAGS='-Wall -Wextra -Werror'
    ./outside --version
    passed 'a C program outside the tree'
    if readelf -d "$prefix/lib/libredlatch.so" | grep 'NEEDED.*libevent'; then
        echo 'libredlatch links libevent'
        exit 1
    fi
    passed 'libredlatch knows no libevent'

    read -ra cflags <<<"$(pkg-config --cflags redlatch)"
    if command -v g++ >/dev/null; then
        read -ra libs <<<"$(pkg-config --libs redlatch)"
        g++ -x c++ -std=c++11 -Wall -Wextra -Werror outside.c -x none -o outside-c++ "${cflags[@]}" "${libs[@]}"
        ./outside-c++ --version
        passed 'a C++ program outside the tree'
    fi

    read -ra libs <<<"$(pkg-config --libs hiredis)"
    gcc outside.c -o outside-static "${cflags[@]}" "$prefix/lib/libredlatch.a" "${libs[@]}" -pthread
    LD_LIBRARY_PATH='' ./outside-static --version
    passed 'a program outside the tree, with the static library'
)

# A program built against the one build of libredlatch starts on the other: with libevent and without.
either_library() {
    LD_LIBRARY_PATH=build/without-event/lib build/outside/outside --version
    gcc examples/outside/outside.c -o build/outside/outside-alone -Iinclude -Lbuild/without-event/lib -lredlatch
    LD_LIBRARY_PATH=build/prefix/lib build/outside/outside-alone --version
    if LD_LIBRARY_PATH=build/prefix/lib ldd build/outside/outside-alone | grep libevent; then
        echo 'libevent is loaded'
        return 1
    fi
    passed 'with libevent or without: a program built with the one starts on the other'
}

stage_core() {
    build_main
    run_tests "$main_build" "${core_suites[@]}"
}

stage_coverage() {
    need_command gcovr
    build coverage -Db_coverage=true -Dexamples=false -Dc_args=-fprofile-update=atomic
    find build/coverage -name '*.gcda' -delete
    run_tests coverage "${core_suites[@]}"
    gcovr --root . --filter lib/ --fail-under-line "$min_line_coverage" build/coverage | tee build/log/coverage.txt
    awk '$1 == "TOTAL" { print "line coverage of lib/: " $4 " of " $2 " lines" }' build/log/coverage.txt >>"$notes"
    passed "at least $min_line_coverage % of the lines of lib/ are covered"
}

stage_asan() {
    build asan -Db_sanitize=address,undefined -Db_lundef=false -Dexamples=false
    run_tests asan --setup asan "${core_suites[@]}"
}

stage_tsan() {
    build tsan -Db_sanitize=thread -Db_lundef=false -Dexamples=false
    # Its shadow memory does not fit into every randomised address space.
    if setarch -R true 2>/dev/null; then wrapper=(setarch -R); fi
    run_tests tsan --setup tsan --suite threads
}

stage_valgrind() {
    need_command valgrind
    build_main
    # Without the exhaustive searches: much arithmetic, no memory.
    run_tests "$main_build" --setup valgrind --suite unit --suite real --suite event --no-suite exhaustive --no-suite no_valgrind
}

stage_examples() {
    build_main
    run_tests "$main_build" --suite examples --suite recipes
    ./examples/quickstart.sh
    passed 'quickstart.sh'
}

stage_bench() {
    build_release
    command -v strace >/dev/null || echo 'skipped: system calls: strace is not installed' | tee -a "$notes"
    run_tests release --suite bench
}

stage_sim() {
    local first pid runs=()
    build_release
    [ -e build/release/tests/sim/sim ] || skip 'Lua 5.1 is not installed'
    trap 'kill "${runs[@]}" 2>/dev/null || true' EXIT
    for first in 1 50001; do
        build/release/tests/sim/sim "$first" 50000 &
        runs+=($!)
    done
    for pid in "${runs[@]}"; do
        wait "$pid"
    done
    passed '100000 seeds'
    echo '100000 simulated worlds, none failed' >>"$notes"
}

stage_mutations() {
    local status=0
    tests/mutations/run.sh build/mutations || status=$?
    [ "$status" != 77 ] || skip 'patch or Lua 5.1 is not installed'
    [ "$status" = 0 ] || return 1
    tail -n 1 build/mutations/table >>"$notes"
    passed 'each planted bug was found'
}

stage_fuzz() {
    local name runs=() dir=build/fuzz/tests/fuzz
    need_command clang
    can_fuzz || skip 'clang comes without libFuzzer (libclang-rt-14-dev)'
    CC=clang build fuzz -Dfuzz=true -Dtests=disabled -Dexamples=false -Devent=disabled
    for name in url structs token node; do
        mkdir -p "build/fuzz/found/$name" # grows from run to run
        # An input that fails is kept in build/fuzz, and can be given to the fuzzer as its only argument.
        "$dir/fuzz_$name" -max_total_time=15 -timeout=10 -max_len=1000 -verbosity=0 -print_final_stats=1 \
            -artifact_prefix="build/fuzz/failed-$name-" "build/fuzz/found/$name" "tests/fuzz/corpus/$name" \
            >"build/log/fuzz-$name.log" 2>&1 &
        runs+=("$!:$name")
    done
    trap 'kill "${runs[@]%%:*}" 2>/dev/null || true' EXIT
    for name in "${runs[@]}"; do
        if ! wait "${name%%:*}"; then
            tail -n 40 "build/log/fuzz-${name#*:}.log"
            return 1
        fi
        passed "fuzz_${name#*:}: $(sed -n 's/^stat::number_of_executed_units: *//p' "build/log/fuzz-${name#*:}.log") inputs"
    done
}

can_fuzz() {
    printf 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -x c -fsanitize=fuzzer,address -o build/fuzz-probe - 2>/dev/null || return 1
    rm build/fuzz-probe
}

stage_storm() {
    build_main
    run_tests "$main_build" --suite storm --verbose
}

stage_model() {
    local status=0
    tests/model/run.sh build/model >build/log/model.txt || status=$?
    cat build/log/model.txt
    [ "$status" != 77 ] || skip 'spin is not installed'
    [ "$status" = 0 ] || return 1
    cat build/log/model.txt >>"$notes"
    passed 'every model holds, and each planted fault was found'
}

stage_fleet() {
    build_main
    run_tests "$main_build" --suite fleet
}

stage_debian13() {
    local status=0
    tests/debian13.sh || status=$?
    [ "$status" != 77 ] || skip "$(tail -n 1 build/log/debian13.log)"
    count_results .roots/trixie/build/meson-logs/run-*.json
    return "$status"
}

# ---- Running them ---------------------------------------------------------------------------------------------------------------

say() {
    printf '%s +%4d s  %s\n' "$(date +%T)" "$SECONDS" "$*"
}

# sum WORD NAME...: how often the word stands in the counts of these stages.
sum() {
    local word=$1
    shift
    cat "${@/%/.counts}" | grep -cx "$word" || true
}

# run_stage NAME SECONDS: in a process of its own, so that `set -e` holds in it whatever is around it, and within a limit.
run_stage() {
    local name=$1 seconds=$2 began=$SECONDS status=0 result=ok took
    rm -f "build/log/$name."*
    touch "build/log/$name.counts" "build/log/$name.notes"
    say "$name ..."
    timeout --kill-after=20 $((seconds * 5 + 300)) "$BASH" tests/run.sh --in-stage "$name" "$all" \
        >"build/log/$name.log" 2>&1 </dev/null &
    child=$!
    wait "$child" || status=$?
    child=
    took=$((SECONDS - began))

    cd build/log
    if [ "$status" = 77 ]; then
        result=skipped
        echo skipped >>"$name.counts"
    elif [ "$status" != 0 ]; then
        result=FAILED
        failures=$((failures + 1))
        grep -qx failed "$name.counts" || echo failed >>"$name.counts"
        [ "$status" != 124 ] || echo 'ran out of time' >>"$name.notes"
        echo "---- the end of build/log/$name.log"
        tail -n 80 "$name.log"
        echo '----'
    fi
    say "$name: $result, $took s"
    {
        printf '%-10s %-8s %5d %6d %7d %7d %7d %7d\n' "$name" "$result" "$took" "$seconds" \
            "$(sum passed "$name")" "$(sum failed "$name")" "$(sum skipped "$name")" \
            "$(awk '$1 == "cases" { n += $2 } END { print n + 0 }' "$name.counts")"
        sed 's/^/           /' "$name.notes"
    } >>table
    cd ../..
}

if [ "${1:-}" = --in-stage ]; then
    stage=$2 all=$3
    counts=$PWD/build/log/$stage.counts notes=$PWD/build/log/$stage.notes
    "stage_$stage"
    exit
fi

all=no
wanted=()
for argument in "$@"; do
    case $argument in
    --all) all=yes ;;
    --list) printf '%s\n' "${stages[@]}" && exit ;;
    -*) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit 2 ;;
    *) wanted+=("$argument") ;;
    esac
done
names=()
declare -A usual
for line in "${stages[@]}"; do
    read -r name seconds _ <<<"$line"
    names+=("$name")
    usual[$name]=$seconds
done
if [ ${#wanted[@]} = 0 ]; then
    [ "$all" = yes ] && wanted=("${names[@]/#core/}") || wanted=("${plain_stages[@]}") # coverage runs what core does
    read -ra wanted <<<"${wanted[*]}"
fi
for name in "${wanted[@]}"; do
    [ -n "${usual[$name]:-}" ] || { echo "No stage is called $name; they are: ${names[*]}"; exit 2; }
done

mkdir -p build/log
rm -f build/log/table
packages_need "${core_packages[@]}"
packages_want "${wanted_packages[@]}"
[ "$all" = no ] || packages_want "${all_packages[@]}"
say "packages are there"

child='' background='' failures=0
trap 'kill $child $background 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
# The root is made while the first stage compiles: both take long, and neither measures time.
if [[ ${#wanted[@]} -gt 1 && " ${wanted[*]} " == *' debian13 '* ]]; then
    nice tests/debian13.sh --prepare >build/log/debian13-prepare.log 2>&1 </dev/null &
    background=$!
fi
for name in "${wanted[@]}"; do
    run_stage "$name" "${usual[$name]}"
done

echo
printf '%-10s %-8s %5s %6s %7s %7s %7s %7s\n' stage result took usual passed failed skipped cases
cat build/log/table
echo
[ "$all" = yes ] || echo 'Not run: the stages of --all (tests/run.sh --list).'
cd build/log
echo "$(sum passed "${wanted[@]}") passed, $(sum failed "${wanted[@]}") failed, $(sum skipped "${wanted[@]}") skipped"
[ "$failures" = 0 ]
