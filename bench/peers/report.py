#!/usr/bin/env python3
"""report.py - makes docs/peers.md and docs/peers.svg of what run.py --json wrote.

usage: bench/peers/report.py FILE [FOLDER]     FOLDER: where to write; default: docs
"""

import json
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What is a property and no measurement; the sources are in README.md beside this file. Consistency, then whether there is a fencing token.
ONE = "one server's memory; forgotten with it unless it persists"
MAJORITY = "majority of independent servers, leases by their clocks"
PROPERTIES = {
    "redlatch": (ONE, "no"),
    "redlatch-fence": (ONE, "yes"),
    "redlock": (ONE, "no"),
    "redlock4": (ONE, "no"),
    "redis-py": (ONE, "no"),
    "redsync": (ONE, "no"),
    "redislock": (ONE, "no"),
    "redisson": (ONE, "no"),
    "redisson-fair": (ONE + "; first come, first served", "no"),
    "redisson-fenced": (ONE, "yes"),
    "rslock": (ONE, "no"),
    "pottery": (ONE, "no"),
    "python-redis-lock": (ONE, "no"),
    "rueidislock": (ONE + "; renewed while held", "no"),
    "redis-plus-plus": (ONE, "no"),
    "postgresql": ("one server's memory; the lock ends with the connection, no lease", "no"),
    "etcd": ("linearizable (Raft; here one member); first come, first served", "yes: the revision"),
    "mariadb": ("one server's memory; the lock ends with the connection, no lease", "no"),
    "zookeeper": ("linearizable writes (Zab; here one server); first come, first served", "yes: the sequence number"),
}


class Figures:
    def __init__(self, report):
        self.peers = {id: peer for id, peer in report["peers"].items() if "scenarios" in peer}

    def get(self, id, scenario, *keys):
        value = self.peers[id]["scenarios"].get(scenario)
        for key in keys:
            value = value.get(key) if value else None
        return value


def number(value, digits=2):
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{digits}f}" if value < 10 else f"{value:.1f}"


def ratio(value, invert=False):
    """Median and range of a ratio to redlatch."""
    if not value:
        return "–"
    low, middle, high = value["min"], value["median"], value["max"]
    if invert:
        low, middle, high = 1 / high, 1 / middle, 1 / low
    return f"{number(middle)} ({number(low)}–{number(high)})"


def some(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def milliseconds(us):
    return number(us / 1000) if us is not None else "–"


def pair(one, other, show):
    return "–" if one is None and other is None else f"{show(one)} / {show(other)}"


def latency(figures, id, scenario):
    p50, p99 = (figures.get(id, scenario, key) for key in ("p50", "p99"))
    return "–" if p50 is None else f"{p50:,.0f} / {p99:,.0f}"


def stopped(figures, id, count):
    """What became of locking while one of several servers stood still."""
    scenario = f"stopped-{count}"
    if figures.get(id, scenario) is None:
        return None
    if reason := figures.get(id, scenario, "skipped"):
        return f"not measured: {reason}"
    cycles, seconds = figures.get(id, scenario, "count"), figures.get(id, scenario, "seconds")
    if figures.get(id, scenario, "hangs"):
        return f"one of {count} stopped: hangs (nothing in {seconds:.0f} s)"
    if not cycles or cycles / seconds < 10:
        errors = figures.get(id, scenario, "errors") or 0
        return f"one of {count} stopped: {some(cycles, 'cycle')} in {seconds:.0f} s" + (f", {some(errors, 'error')}" if errors else "")
    healthy, p50, p99 = (figures.get(id, scenario, key) for key in ("healthy_p50", "p50", "p99"))
    text = f"one of {count} stopped: goes on, p50 {milliseconds(p50)} ms (healthy {milliseconds(healthy)}), p99 {milliseconds(p99)}"
    return text + (f", {some(errors, 'error')}" if (errors := figures.get(id, scenario, "errors")) else "")


def restarted(figures, id):
    """What became of a held lock when its one server was killed and started again."""
    result = figures.get(id, "restart-1")
    if result is None or "skipped" in result:
        return "not measured" + (f": {result['skipped']}" if result else "")
    told = "the first holder's release fails" if result["holder_told"] else "the first holder's release says nothing"
    done = f"killed, back after {result['away_s']:.1f} s" if "away_s" in result else "killed and restarted"
    if result["granted_again_s"] is None:
        return done + ": the lock is kept" + (", but " + told if result["holder_told"] else "")
    return f"{done}: granted again after {result['granted_again_s']:.1f} s; {told}"


def crash(figures, id, count=1):
    result = figures.get(id, f"crash-{count}")
    if not result or "skipped" in result:
        return "–"
    return "> 20" if result["seconds"] is None else f"{result['seconds']:.2f}"


def comparison(figures, report):
    yield (
        "| | one lock, 1 server: ratio | p50 / p99 µs | one lock, 5 servers: ratio | p50 / p99 µs | the same, servers on another core: ratio | 256 locks at once: throughput of redlatch ÷ theirs "
        "| client CPU a cycle, theirs ÷ redlatch | hand-offs a second, 2 / 16 waiters | hand-off p50 / p99 ms, 16 waiters "
        "| commands a hand-off, 2 / 16 waiters | crash to free, s | one server of 5 stopped | fencing token |"
    )
    yield "|---|" + "---|" * 13
    for id, peer in report["peers"].items():
        version = f" {peer['version']}" if peer.get("version") else ""
        if "skipped" in peer:
            yield f"| {peer['name']}{version} | skipped: {peer['skipped']} |" + " |" * 12
            continue

        def g(scenario, *keys, id=id):
            return figures.get(id, scenario, *keys)

        gone = (stopped(figures, id, 5) or "–").replace("one of 5 stopped: ", "")
        cells = [
            peer["name"] + version,
            ratio(g("uncontended-1", "ratio")),
            latency(figures, id, "uncontended-1"),
            ratio(g("uncontended-5", "ratio")),
            latency(figures, id, "uncontended-5"),
            ratio(g("apart-5", "ratio")),
            ratio(g("many-1", "throughput_ratio"), invert=True),
            ratio(g("many-1", "cpu_ratio")),
            pair(g("contended2-1", "rate"), g("contended16-1", "rate"), lambda v: number(v, 0) if v is not None else "–"),
            pair(g("contended16-1", "p50"), g("contended16-1", "p99"), milliseconds),
            pair(g("contended2-1", "commands"), g("contended16-1", "commands"), lambda v: number(v, 1)),
            crash(figures, id),
            gone,
            PROPERTIES[id][1],
        ]
        yield "| " + " | ".join(cells) + " |"


def trade_offs(figures):
    yield "| | consistency | what was done, what happened | fencing token | taken and released, p50 ms | crash to free, s | commands a hand-off, 16 waiters |"
    yield "|---|---|---|---|---|---|---|"
    for id, peer in figures.peers.items():
        for count in (1, 3, 5):
            if not any(figures.get(id, scenario) for scenario in (f"uncontended-{count}", f"stopped-{count}", f"restart-{count}")):
                continue
            consistency, fencing = PROPERTIES[id]
            name = peer["name"]
            if any(figures.get(id, f"uncontended-{n}") for n in (3, 5)):
                name += ", " + some(count, "server")
            if count > 1:
                consistency = consistency.replace(ONE, MAJORITY)
            happened = restarted(figures, id) if count == 1 else stopped(figures, id, count)
            asked = figures.get(id, f"contended16-{count}", "commands")
            p50 = milliseconds(figures.get(id, f"uncontended-{count}", "p50"))
            cells = [name, consistency, happened or "–", fencing, p50, crash(figures, id, count), number(asked, 1)]
            yield "| " + " | ".join(cells) + " |"


def document(report):
    figures, settings = Figures(report), report["settings"]
    versions = ", ".join(f"{name} {report['versions'][name]}" for name in ("redis-server", "ioredis", "go-redis") if name in report["versions"])
    yield "# redlatch beside other locks"
    yield ""
    yield (
        f"Measured on {report['date']}, on one machine with {report['cores']} cores, by `bench/peers/run.py`; method, settings and sources: "
        f"[bench/peers/README.md](../bench/peers/README.md). With {versions}. Medians of {settings['reps']} repetitions, in which slices of "
        "redlatch and of the other alternate; in brackets the smallest and the largest ratio of a repetition."
    )
    yield ""
    yield "![Ratios, hand-offs, commands and crash-to-free times](peers.svg)"
    yield ""
    yield "## The comparison"
    yield ""
    yield (
        "Ratios of the uncontended cycle are p50 of theirs ÷ p50 of redlatch: above 1, redlatch is faster. "
        "Contention: each holds the lock for 5 ms, so that 200 hand-offs a second are ideal. Crash to free: leases and sessions of 2 s, the "
        "holder killed half a second after it took the lock."
    )
    yield ""
    yield from comparison(figures, report)
    yield ""
    yield "## Trade-offs"
    yield ""
    yield "Consistency and fencing are properties (sources beside the method); everything else was measured in this run."
    yield ""
    yield from trade_offs(figures)
    yield ""
    yield "## Goals"
    yield ""
    yield "| id | goal | measured | |"
    yield "|---|---|---|---|"
    for line in report["goals"]:
        yield f"| {line['id']} | {line['goal']} | {number(line['measured'])} | {line['verdict']} |"


def plot(report, folder):
    """One picture of four charts: a bar for each peer."""
    figures = Figures(report)

    def bars(*columns):
        """Rows of a name and a value for each column; peers without any value are left out."""
        for id, peer in figures.peers.items():
            values = [column(id) for column in columns]
            if any(value is not None for value in values):
                cells = ["NaN" if value is None or not math.isfinite(value) or value <= 0 else f"{value:.5g}" for value in values]
                yield f'"{peer["name"]}" ' + " ".join(cells)

    def inverse(value):
        return 1 / value if value else None

    def value(scenario, *keys):
        return lambda id: figures.get(id, scenario, *keys)

    charts = [
        ("Uncontended cycle: p50 ÷ redlatch's", "log", ["1 server", "5 servers on another core"],
         bars(value("uncontended-1", "ratio", "median"), value("apart-5", "ratio", "median"))),
        ("256 locks at once: redlatch's throughput ÷ theirs, their client CPU ÷ redlatch's", "log", ["throughput", "CPU a cycle"],
         bars(lambda id: inverse(figures.get(id, "many-1", "throughput_ratio", "median")), value("many-1", "cpu_ratio", "median"))),
        ("Hand-offs a second, held for 5 ms (200 is ideal)", "linear", ["2 waiters", "16 waiters"],
         bars(value("contended2-1", "rate"), value("contended16-1", "rate"))),
        ("Commands a hand-off", "log", ["2 waiters", "16 waiters"],
         bars(value("contended2-1", "commands"), value("contended16-1", "commands"))),
    ]  # fmt: skip
    script = [
        "set terminal svg size 1200,900 dynamic noenhanced font 'sans,11' background 'white'",
        f"set output '{folder / 'peers.svg'}'",
        "set multiplot layout 2,2",
        "set style data histograms",
        "set style histogram clustered gap 1",
        "set style fill solid 0.85 noborder",
        "set xtics rotate by -40 nomirror scale 0 font ',9'",
        "set ytics nomirror",
        "set grid ytics lc rgb '#dddddd'",
        "set border 3",
        "set key above right horizontal",
        "set rmargin 12",
    ]
    colours = ("#3465a4", "#f57900")
    for i, (title, scale, labels, rows) in enumerate(charts):
        rows = list(rows)
        there = [c for c in range(len(labels)) if any(row.split('"')[2].split()[c] != "NaN" for row in rows)]
        if not there:
            script.append("set multiplot next")  # nothing of it was measured
            continue
        script += [f"$chart{i} << EOD", *rows, "EOD"]
        script += [f'set title "{title}"', "set logscale y" if scale == "log" else "unset logscale y"]
        script += ["set yrange [0:*]" if scale == "linear" else "set yrange [*:*]"]
        parts = [f"$chart{i} using {c + 2}:xtic(1) title '{labels[c]}' lc rgb '{colours[c]}'" for c in there]
        script += ["plot " + ", ".join(parts) + (", 1 with lines lc rgb 'black' notitle" if i < 2 else "")]
    script.append("unset multiplot")
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    report = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2]) if len(sys.argv) == 3 else ROOT / "docs"
    (folder / "peers.md").write_text("\n".join(document(report)) + "\n")
    try:
        plot(report, folder)
    except FileNotFoundError:
        print("skipped: the plot, for gnuplot is not installed")


if __name__ == "__main__":
    main()
