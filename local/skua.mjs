#!/usr/bin/env -S node --max-semi-space-size=8
// Starts the command line, under the Node.js that the project pins where the machine's own is too old to run TypeScript.
// The flag keeps the space for young objects at 24 MiB, which else grows to a hundred under load and never shrinks.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const MAJOR_MIN = 24;

// Node.js strips types everywhere but under node_modules: an installed package runs its bundle.
const bundle = new URL('../dist/main.js', import.meta.url);
const isInstalled = import.meta.url.includes('/node_modules/') && existsSync(bundle);
const program = isInstalled ? bundle : new URL('./main.ts', import.meta.url);

if (Number.parseInt(process.versions.node, 10) >= MAJOR_MIN) await import(program.href);
else runUnder(pinnedNode());

/** Path of the Node.js that came with `npm ci`. */
function pinnedNode() {
  try {
    return createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    console.error(`error node_too_old: Skua needs Node.js ${MAJOR_MIN} or later, and this is ${process.version}. Run \`npm ci\` in the project's folder, which brings one, or install a newer Node.js.`);
    process.exit(1);
  }
}

function runUnder(node) {
  const child = spawn(node, ['--max-semi-space-size=8', fileURLToPath(program), ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // A terminal sends Ctrl+C to both processes already.
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    });
  }
  child.on('error', (error) => {
    console.error(`error node_not_started: ${node} could not be started: ${error.message}. Run \`npm ci\` again.`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? code : 128 + constants.signals[signal];
  });
}
