#!/usr/bin/env bash
# What README.md says is so: its C snippets compile without a warning, the first one runs on a real server, its ACL line is enough
# for everything, the names it uses are in the headers, and its links lead somewhere.
# usage: readme.sh "CC" LIBRARY SINGLE REDLOCK      (the shared library, and two of the examples)
set -euo pipefail
read -ra cc <<<"$1"
library=$(realpath "$2") single=$(realpath "$3") redlock=$(realpath "$4")
cd "$(dirname "$0")/.."
# shellcheck source=tests/fleet/servers.sh
. tests/fleet/servers.sh
servers_start 1 tcp
work=$servers_dir
failed=0

complain() {
    echo "README.md: $*"
    failed=1
}

# Each snippet becomes a file: a whole one if it includes something, else the body of a function that has a client, a lock and a
# report.
awk -v dir="$work" '
    /^```c$/ { n++; text = ""; inside = 1; next }
    /^```$/ && inside {
        file = dir "/snippet" n ".c"
        if (text !~ /#include/)
            text = "#include <redlatch.h>\n#include <stdio.h>\n#include <string.h>\n" \
                "void work_on(int part);\nint snippet(rl_client *client, rl_lock *lock, rl_report *report);\n" \
                "int snippet(rl_client *client, rl_lock *lock, rl_report *report)\n{\n" \
                "    (void)client, (void)lock, (void)report;\n    {\n" text "        return rc;\n    }\n}\n"
        printf "%s", text > file
        close(file)
        inside = 0
    }
    inside { text = text $0 "\n" }
' README.md

compiled=0
for snippet in "$work"/snippet*.c; do
    if grep -q '<event2/' "$snippet" && ! printf '#include <event2/event.h>\n' | "${cc[@]}" -E - >"$work/out" 2>&1; then
        echo "not compiled, there is no libevent: $(basename "$snippet")"
        continue
    fi
    "${cc[@]}" -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -c "$snippet" -o "$work/snippet.o" ||
        complain "$(basename "$snippet") does not compile"
    compiled=$((compiled + 1))
done
[ "$compiled" -ge 4 ] || complain "only $compiled snippets found"

"${cc[@]}" -Iinclude "$work/snippet1.c" -o "$work/demo" "$library" -Wl,-rpath,"$(dirname "$library")"
"$work/demo" "${SERVER_URLS[0]}" >"$work/out" || complain 'the first snippet fails'
cat "$work/out"
grep -qE '^ours for 9[0-9]{3} ms$' "$work/out" || complain 'the first snippet did not get the lock'

# The user for locks, made by the line that is shown.
acl=$(grep -m1 '^ACL SETUSER' README.md)
# shellcheck disable=SC2086 # words
redis-cli ${SERVER_CLI[0]} $acl >"$work/out"
url=redis://locks:CHANGE-THIS@${SERVER_URLS[0]#redis://}
"$redlock" "$url" || complain 'check, acquire and release fail for the user that is shown'
"$single" "$url" || complain 'extend fails for the user that is shown'
# shellcheck disable=SC2086 # words
redis-cli ${SERVER_CLI[0]} acl log >"$work/out"
! grep . "$work/out" || complain 'that user was denied something'

grep -oE '\brl_[a-z0-9_]+|\bRL_[A-Z0-9_]+' README.md | sort -u >"$work/names"
while read -r name; do
    grep -qw "$name" include/redlatch.h include/redlatch_event.h || complain "there is no $name"
done <"$work/names"

{ grep -oE '\]\([^)]+\)' README.md || true; } | sed 's/^](//; s/)$//' | sort -u >"$work/links"
while read -r link; do
    case $link in
    http*) ;;
    '#'*) # the anchor of a heading: lower case, no punctuation, dashes for spaces
        grep '^#' README.md | tr '[:upper:]' '[:lower:]' | sed -E 's/^#+ //; s/[^a-z0-9 _-]//g; s/ /-/g' | grep -qxF -- "${link#\#}" ||
            complain "no heading for $link" ;;
    *) [ -e "$link" ] || complain "there is no $link" ;;
    esac
done <"$work/links"

[ "$failed" = 0 ] && echo "$compiled snippets, $(wc -l <"$work/names") names and $(wc -l <"$work/links") links are right"
exit "$failed"
