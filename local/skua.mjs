#!/usr/bin/env -S node --max-semi-space-size=16 --initial-old-space-size=64
// Starts the command line: the sources in a checkout, the bundle in an installed package. Where the machine's own
// Node.js is too old it takes the one that the project pins, or that was installed beside the package. The flags keep
// the space for young objects at 24 MiB, which else grows to a hundred under load and never shrinks, and let so much
// memory be there before the whole heap is collected that long reads do not cause that again and again.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { isNewEnough, NODE_MIN, refuseNode, SOURCES_NODE_MIN } from './node-version.mjs';

// A package has no sources, which Node.js would not run below node_modules either.
const sources = new URL('./main.ts', import.meta.url);
const isCheckout = existsSync(sources);
const program = isCheckout ? sources : new URL('../dist/main.js', import.meta.url);

/** As in the first line. */
const FLAGS = ['--max-semi-space-size=16', '--initial-old-space-size=64'];

const min = isCheckout ? SOURCES_NODE_MIN : NODE_MIN;

if (isNewEnough(min)) await import(program.href);
else runUnder(pinnedNode());

/** Path of the Node.js that came with `npm ci`, or that stands beside the package. */
function pinnedNode() {
  try {
    return createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    return refuseNode(
      isCheckout
        ? "Run `npm ci` in the project's folder, which brings one, or install a newer Node.js."
        : 'Install a newer Node.js, or one for Skua alone, where you have installed Skua: `npm install node@24` (with -g if you did so).',
      min,
    );
  }
}

function runUnder(node) {
  const child = spawn(node, [...FLAGS, fileURLToPath(program), ...process.argv.slice(2)], {
    stdio: 'inherit',
    // As the archive does, and why the first line does not, says local/README.md.
    env: { MALLOC_ARENA_MAX: '2', ...process.env },
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // A terminal sends Ctrl+C to both processes already.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    });
  }
  child.on('error', (error) => {
    console.error(
      `error node_not_started: ${node} could not be started: ${error.message}. ${isCheckout ? 'Run `npm ci` again.' : 'Install it again: `npm install node@24`.'}`,
    );
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? code : 128 + constants.signals[signal];
  });
}
