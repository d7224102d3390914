set -e
f=$1; shift
d=$(mktemp -d); cd $d
spin -a "$@" /tmp/fence/tests/model/$f >spin.log 2>&1 || { cat spin.log; exit 2; }
gcc -O2 -DSAFETY -DMEMLIM=8000 -DCOLLAPSE -o pan pan.c
timeout ${T:-100} ./pan -E -m200000 -n > out; grep -E "errors:|states, stored|assertion" out
