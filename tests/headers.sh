#!/bin/sh
# Each public header compiles alone without a warning, as C11 and as C++11, and beside GNU readline, which owns many rl_ names.
# usage: headers.sh "CC" HEADER...
set -eu
cc=$1
shift
warnings='-Wall -Wextra -Wpedantic -Werror'
source=$(mktemp)
trap 'rm -f "$source"' EXIT

# $cc and $warnings are lists of words.
# shellcheck disable=SC2086
compile() { # LANGUAGE STANDARD COMPILER: the includes come from stdin
    cat >"$source"
    $3 -x "$1" -std="$2" $warnings -I"$dir" -fsyntax-only "$source" || { echo "failed: $3 -std=$2"; cat "$source"; exit 1; }
}

cxx=
for candidate in ${CXX:-} g++ clang++; do
    command -v "$candidate" >/dev/null && { cxx=$candidate; break; }
done
[ -n "$cxx" ] || echo 'no C++ compiler: only C is tried'
beside=
if printf '#include <stdio.h>\n#include <readline/readline.h>\n' | $cc -x c -fsyntax-only - 2>/dev/null; then
    beside='#include <stdio.h>\n#include <readline/readline.h>\n'
else
    echo 'no readline headers: not tried beside them'
fi

for header in "$@"; do
    dir=$(dirname "$header")
    name=$(basename "$header")
    use="#include <$name>\nint use_of_header(void);\nint use_of_header(void) { return 0; }\n"
    # The formats are ours.
    # shellcheck disable=SC2059
    {
        printf "$use" | compile c c11 "$cc"
        [ -z "$beside" ] || printf "$beside$use" | compile c gnu11 "$cc"
        [ -z "$beside" ] || printf "#include <$name>\n$beside" | compile c gnu11 "$cc"
        [ -z "$cxx" ] || printf "$use" | compile c++ c++11 "$cxx"
        [ -z "$cxx" ] || [ -z "$beside" ] || printf "$beside$use" | compile c++ gnu++11 "$cxx"
    }
    echo "$name compiles"
done
