#!/bin/sh
# All C sources are formatted as .clang-format says. Other versions of clang-format format differently: without version 14 this
# is a skip (77).
set -eu
cd "$(dirname "$0")/.."
for tool in clang-format-14 clang-format ''; do
    [ -n "$tool" ] || { echo 'SKIP: no clang-format 14'; exit 77; }
    "$tool" --version 2>/dev/null | grep -q 'version 14\.' && break
done
failed=
for file in $(find include lib tests examples bench tools -name '*.[ch]'); do
    "$tool" --dry-run -Werror "$file" 2>/dev/null || failed="$failed $file"
done
[ -z "$failed" ] || { echo "To be formatted: $tool -i$failed"; exit 1; }
