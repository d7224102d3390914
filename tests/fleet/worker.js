// worker.js - a contender of the mixed fleet that locks with npm's `redlock` over ioredis; see worker.c for what it proves.
//
// Version 5 and version 4 (installed under the alias redlock4) differ in their calls only. Neither is asked to retry by itself:
// version 5 keeps the minority that a failed attempt won until its last retry, and so can shut itself out for a whole lease.
'use strict';

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const Redis = require('ioredis');

const TTL_MS = 10000;
const COUNTER_WIDTH = 20;

function lockerV5(clients) {
  const { default: Redlock } = require('redlock');
  const redlock = new Redlock(clients, { retryCount: 0 });
  return {
    acquire: (key) => redlock.acquire([key], TTL_MS),
    release: (lock) => lock.release(),
    isBusy: (error) => error.name === 'ExecutionError',
  };
}

function lockerV4(clients) {
  const Redlock = require('redlock4');
  const redlock = new Redlock(clients, { retryCount: 0 });
  return {
    acquire: (key) => redlock.lock(key, TTL_MS),
    release: (lock) => lock.unlock(),
    isBusy: (error) => error.name === 'LockError',
  };
}

async function raiseCounter(fd) {
  const text = Buffer.alloc(COUNTER_WIDTH);
  const length = fs.readSync(fd, text, 0, COUNTER_WIDTH, 0);
  const next = Number(text.toString('latin1', 0, length)) + 1;
  await sleep(1);
  fs.writeSync(fd, String(next).padStart(COUNTER_WIDTH, '0'), 0);
}

async function takeTurn(locker, key, fd) {
  let lock;
  try {
    lock = await locker.acquire(key);
  } catch (error) {
    if (!locker.isBusy(error)) throw error;
    return 0;
  }
  await raiseCounter(fd);
  await locker.release(lock);
  return 1;
}

async function main() {
  const [name, version, urls, key, counter, seconds] = process.argv.slice(2);
  if (!seconds) {
    console.error('usage: worker.js NAME 4|5 URLS KEY COUNTER-FILE SECONDS');
    process.exit(2);
  }
  const clients = urls.split(',').map((url) => new Redis(url.replace(/^unix:\/\//, '')));
  const locker = version === '4' ? lockerV4(clients) : lockerV5(clients);
  const fd = fs.openSync(counter, 'r+');
  const end = Date.now() + Number(seconds) * 1000;
  let sections = 0;
  while (Date.now() < end) {
    sections += await takeTurn(locker, key, fd);
    await sleep(1 + Math.random() * 8);
  }
  await Promise.all(clients.map((client) => client.quit()));
  fs.closeSync(fd);
  console.log(`${name} ${sections}`);
}

main().catch((error) => {
  console.error(`${process.argv[2]}: ${error.stack}`);
  process.exit(1);
});
