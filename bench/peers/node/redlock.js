// redlock.js - the worker for npm's redlock over ioredis, with its defaults. Modes: v5; v4, installed under the alias redlock4.
//
// Both retry 10 times, with pauses of 200 ms and up to 100 (version 4) or 200 ms of jitter, and fail then.
'use strict';

const Redis = require('ioredis');
const { run } = require('./worker');

function connect(urls) {
  return urls.map((url) => new Redis(url).on('error', () => {})); // it reconnects by itself
}

function v5(urls) {
  const { default: Redlock } = require('redlock');
  const redlock = new Redlock(connect(urls));
  redlock.on('error', () => {}); // events about single servers
  return {
    acquire: (key, ttl) => redlock.acquire([key], ttl),
    release: (lock) => lock.release(),
  };
}

function v4(urls) {
  const Redlock = require('redlock4');
  const redlock = new Redlock(connect(urls));
  redlock.on('clientError', () => {});
  return {
    acquire: (key, ttl) => redlock.lock(key, ttl),
    release: (lock) => lock.unlock(),
  };
}

run((mode, urls) => (mode === 'v4' ? v4(urls) : v5(urls)));
