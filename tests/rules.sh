#!/bin/sh
# The rules of the source tree that a compiler does not check: who may include what, who may read clocks, and that the
# library neither prints nor ends the process. Run from anywhere; exit 1 if a rule is broken.
set -eu
cd "$(dirname "$0")/.."
failed=0

code=$(mktemp -d)
trap 'rm -rf "$code"' EXIT
mkdir "$code/lib"
for file in lib/*.c lib/*.h; do
    [ -f "$file" ] || continue
    # Without comments and texts: they may name what the code must not use.
    awk '{
        rest = $0; kept = ""
        while (rest != "") {
            at = index(rest, inside ? "*/" : "/*")
            if (!inside)
                kept = kept (at ? substr(rest, 1, at - 1) : rest)
            rest = at ? substr(rest, at + 2) : ""
            if (at)
                inside = !inside
        }
        print kept
    }' "$file" | sed -E '/^[[:space:]]*#/!s/"([^"\\]|\\.)*"/""/g' >"$code/$file"
done
cd "$code"

# rule TEXT REGEX NAMES: no file of lib/ may match REGEX, except those whose name begins with one of NAMES (words, may be empty).
rule() {
    for file in lib/*.c lib/*.h; do
        [ -f "$file" ] || continue
        allowed=no
        for name in $3; do
            case $(basename "$file") in "$name".* | "$name"_*) allowed=yes ;; esac
        done
        [ "$allowed" = no ] || continue
        if hits=$(grep -nE "$2" "$file"); then
            printf '%s: %s\n%s\n' "$file" "$1" "$hits"
            failed=1
        fi
    done
}

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]'
rule 'only the codec includes hiredis' "$include(hiredis/|(hiredis|read|sds|async)\.h)" 'codec'
rule 'only the event library includes libevent' "$include(event2/|event\.h)" 'event'
rule 'only socket code includes socket headers' "$include(sys/(socket|un|epoll|eventfd|timerfd)|netinet/|arpa/|netdb|poll)" \
    'sock port poll pump blocking event'
rule 'only the port reads clocks' '\b(clock_gettime|gettimeofday|timespec_get|time|clock)[[:space:]]*\(' 'port'
rule 'only the port sleeps, forks or draws random numbers' '\b(nanosleep|usleep|sleep|fork|getrandom|rand|random)[[:space:]]*\(' 'port'
rule 'the library does not print' '\b(v?f?printf|puts|fputs|perror|syslog|putchar|fwrite)[[:space:]]*\(|\b(stdout|stderr)\b' ''
rule 'the library does not end the process' '\b(abort|_?exit|_Exit|quick_exit|raise|kill)[[:space:]]*\(' ''

# The pure part knows neither files, sockets, time nor threads: it is handed `now`, and says what to send.
for name in acquire extend release check ballot quorum script url status; do
    for file in lib/$name.c lib/$name.h; do
        [ -f "$file" ] || continue
        if hits=$(grep -nE "$include(sys/|netinet/|arpa/|netdb|poll\.|pthread|time\.h|unistd|fcntl|signal|hiredis|event|sock\.h|pump\.h)" "$file"); then
            printf '%s: the pure part includes no system interface\n%s\n' "$file" "$hits"
            failed=1
        fi
    done
done

[ "$failed" = 0 ] && echo 'all rules kept'
exit "$failed"
