// worker.js - what the Node programs of the comparison share: the protocol that run.py speaks with every worker (../README.md).
'use strict';

const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');

const TTL_MS = 10000;

const nowUs = () => Number(process.hrtime.bigint() / 1000n);
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

class Run {
  constructor(ms) {
    this.us = [];
    this.errors = 0;
    this.cpu = process.cpuUsage();
    this.at = Date.now() * 1000;
    this.begin = nowUs();
    this.end = this.begin + ms * 1000;
  }

  over() {
    return nowUs() >= this.end;
  }

  fail(error) {
    this.errors += 1;
    this.last = String(error.message || error).slice(0, 200);
  }

  print() {
    const cpu = process.cpuUsage(this.cpu);
    const n = this.us.length;
    const line = { count: n, at_us: this.at, us: nowUs() - this.begin, cpu_us: cpu.user + cpu.system };
    if (n) {
      this.us.sort((a, b) => a - b);
      const at = (part) => this.us[Math.floor(n * part)];
      Object.assign(line, { p50: at(0.5), p90: at(0.9), p99: at(0.99) });
    }
    if (this.errors) Object.assign(line, { errors: this.errors, last_error: this.last });
    say(line);
  }
}

async function cycles(locker, key, measured) {
  while (!measured.over()) {
    const start = nowUs();
    try {
      await locker.release(await locker.acquire(key, TTL_MS));
      measured.us.push(nowUs() - start);
    } catch (error) {
      measured.fail(error);
    }
  }
}

// Who has had the lock stands back until another has it, and then for a random time of up to half a round: so each acquisition is a
// hand-off, and those who poll at fixed intervals do not fall into step.
async function waiter(contest, number, locker, measured) {
  while (!measured.over()) {
    if (contest.last === number) {
      await contest.change;
      continue;
    }
    await sleep((Math.random() * contest.holdUs * (contest.members - 1)) / 2000);
    let lock;
    try {
      lock = await locker.acquire(contest.key, TTL_MS);
    } catch (error) {
      if (!measured.over()) measured.fail(error);
      continue;
    }
    const now = nowUs();
    if (contest.released && now < measured.end) measured.us.push(now - contest.released);
    contest.last = number;
    contest.changed();
    if (!measured.over()) await sleep(contest.holdUs / 1000);
    contest.released = nowUs();
    await locker.release(lock).catch((error) => measured.fail(error));
  }
}

const lockers = []; // of waiters, as in processes of their own; kept for the next contention

async function contend(open, mode, urls, count, ms, holdUs) {
  if (lockers.length < count) {
    while (lockers.length < count) lockers.push(open(mode, urls));
    await sleep(100); // they connect in the background
  }
  const contest = { key: `${mode}-contend`, holdUs, members: count, last: -1, released: 0 };
  contest.changed = () => {
    const tell = contest.tell;
    contest.change = new Promise((resolve) => {
      contest.tell = resolve;
    });
    if (tell) tell();
  };
  contest.changed();
  const measured = new Run(ms);
  const wake = setTimeout(contest.changed, ms);
  await Promise.all(lockers.slice(0, count).map((locker, i) => waiter(contest, i, locker, measured)));
  clearTimeout(wake);
  measured.print();
}

async function run(open) {
  const [mode, list] = process.argv.slice(2);
  const urls = list.split(',');
  const own = open(mode, urls);
  let held = null;
  say({ ready: true });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, ...words] = line.split(' ');
    const numbers = words.map(Number);
    if (command === 'cycle') {
      const measured = new Run(numbers[0]);
      await cycles(own, `${mode}-cycle`, measured);
      measured.print();
    } else if (command === 'many') {
      const measured = new Run(numbers[1]);
      await Promise.all(Array.from({ length: numbers[0] }, (_, i) => cycles(own, `${mode}-many-${i}`, measured)));
      measured.print();
    } else if (command === 'contend') {
      await contend(open, mode, urls, ...numbers);
    } else if (command === 'take') {
      try {
        held = await own.acquire(words[0], numbers[1]);
        say({ held: true });
      } catch (error) {
        say({ held: false, error: String(error.message || error).slice(0, 200) });
      }
    } else if (command === 'release') {
      try {
        await own.release(held);
        say({ released: true });
      } catch (error) {
        say({ released: false, error: String(error.message || error).slice(0, 200) });
      }
      held = null;
    } else if (command === 'quit') {
      break;
    } else {
      say({ error: 'unknown command' });
    }
  }
  process.exit(0);
}

module.exports = { run };
