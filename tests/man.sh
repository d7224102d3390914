#!/usr/bin/env bash
# Man pages: each public function has one, with the prototype of the header; none names a function, type or constant that does not
# exist; meson installs a page under each name; and the macros are clean, as far as mandoc or man is there to say so.
# usage: man.sh      (from anywhere)
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pages=(docs/man/*.[37])
failed=0

complain() {
    echo "$*"
    failed=1
}

# squeeze: prototypes, one a line, without blanks that mean nothing.
squeeze() {
    sed -E 's/[[:space:]]+/ /g; s/ ?([*(),;]) ?/\1/g; s/^ | $//g' | sort
}

# The headers' functions, and the types of callbacks.
cat include/redlatch.h include/redlatch_event.h | tr '\n' ' ' | grep -oE 'RL_API [^;#]*;|typedef void rl_[a-z_]+\([^;]*;' |
    sed -E 's/RL_API |RL_CHECK |;//g' | squeeze >"$work/headers"

# The synopses of the pages: .Ft TYPE, then .Fo NAME, .Fa ARGUMENT ..., .Fc or .Fn NAME ARGUMENT.
awk '
    function unquote(text) { gsub(/"/, "", text); return text }
    /^\.Sh / { synopsis = ($2 == "SYNOPSIS") }
    !synopsis { next }
    /^\.Ft / { type = unquote(substr($0, 5)) }
    /^\.Fo / { name = $2; list = "" }
    /^\.Fa / { list = list (list == "" ? "" : ",") unquote(substr($0, 5)) }
    /^\.Fc/ { print type " " name "(" list ")" }
    /^\.Fn / { print type " " $2 "(" $3 ")" }
' "${pages[@]}" | squeeze | grep -vE '^void rl_(options|request)_init\(' >"$work/pages" # those two are macros
diff "$work/headers" "$work/pages" || complain 'the headers (<) and the synopses (>) differ'
[ -s "$work/headers" ] || complain 'no function found in the headers'

# Each function, and the macros, by the names of the pages; and what meson installs.
grep -hoE '^\.Nm rl_[a-z_]+' docs/man/*.3 | cut -c 5- | sort >"$work/named"
{ sed -E 's/.*[ *](rl_[a-z_]+)\(.*/\1/' "$work/headers" | grep -v '_cb$' && printf 'rl_options_init\nrl_request_init\n'; } | sort >"$work/functions"
diff "$work/functions" "$work/named" || complain 'the functions (<) and the NAME sections (>) differ'
grep -oE "'rl_[a-z_]+'" docs/meson.build | tr -d "'" | sort >"$work/installed"
diff "$work/functions" "$work/installed" || complain 'the functions (<) and docs/meson.build (>) differ'

for page in "${pages[@]}"; do # (.Dt has the name of the page in capitals)
    grep -v '^\.Dt ' "$page" | { grep -oE '\b(rl_[a-z0-9_]+|RL_[A-Z0-9_]+)' || true; } | sort -u >"$work/words"
    while read -r name; do
        grep -qw -- "$name" include/redlatch.h include/redlatch_event.h || complain "$page: there is no $name"
    done <"$work/words"
done

if command -v mandoc >/dev/null; then
    for page in "${pages[@]}"; do # a page that is not installed is no fault of ours
        mandoc -T lint -W style "$page" >"$work/lint" 2>&1 || true
        grep -vE 'referenced manual not found|outdated mandoc.db' "$work/lint" && complain "$page: see above"
    done
elif command -v man >/dev/null; then
    for page in "${pages[@]}"; do
        man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>"$work/lint" >/dev/null || complain "$page: man fails"
        grep . "$work/lint" && complain "$page: see above"
    done
else
    echo 'The macros were not looked at: neither mandoc nor man is installed.'
fi
[ "$failed" = 0 ] && echo "${#pages[@]} pages, $(wc -l <"$work/functions") names"
exit "$failed"
