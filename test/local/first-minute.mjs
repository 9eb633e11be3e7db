// The first minute of a node, by whatever command starts it: from the package, from the archive, or in a container.
//   node test/local/first-minute.mjs URL COMMAND [WORD...]
// Starts it, waits until it is ready at URL, appends, reads, looks for the page, scavenges, and stops it by SIGTERM; then
// starts it again and finds what was written. Ends with 0, or says what was not as it should be. For any Node.js from 20
// on, without packages: workflows run it where there is nothing else.
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

/** A start, or a scavenge, that takes longer has failed; the runners of workflows are slow. */
const LIMIT_MS = 120_000;
const POLL_MS = 200;
const EVENT = { eventId: '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11', eventType: 'parcel-received', data: { from: 'Oslo' } };

const [url, command, ...words] = process.argv.slice(2);
if (command === undefined) {
  console.error('Usage: node test/local/first-minute.mjs URL COMMAND [WORD...]');
  process.exit(2);
}
const authorization = `Basic ${btoa(`admin:${process.env['SERVER_DEFAULT_ADMIN_PASSWORD'] ?? 'changeit'}`)}`;

async function call(path, { status, ...init }) {
  const headers = { authorization, accept: 'application/json', ...init.headers };
  const reply = await fetch(`${url}${path}`, { ...init, headers, redirect: 'manual' });
  const text = await reply.text();
  if (reply.status !== status)
    throw new Error(`${init.method ?? 'GET'} ${path} is ${reply.status}, not ${status}: ${text}`);
  return text;
}

/** Calls until it says so. */
async function until(what, isSo) {
  for (const end = Date.now() + LIMIT_MS; !(await isSo()); await sleep(POLL_MS))
    if (Date.now() > end) throw new Error(`After ${LIMIT_MS / 1_000} s: ${what}.`);
}

/** Runs the node while `use` does what it does, and looks that it ends well. */
async function withNode(use) {
  const node = spawn(command, words, { stdio: 'inherit' });
  const ended = new Promise((resolve) => {
    node.on('error', (error) => resolve(error.message));
    node.on('close', (code, signal) => resolve(signal ?? code));
  });
  let end = null;
  void ended.then((how) => {
    end = { how };
  });
  try {
    await until('the node is not ready', async () => {
      if (end !== null) throw new Error(`The node ended with ${end.how} before it was ready.`);
      return await fetch(`${url}/health/ready`).then(
        async (reply) => (await reply.body?.cancel(), reply.status === 200),
        () => false,
      );
    });
    await use();
  } finally {
    node.kill('SIGTERM');
    await ended;
  }
  if (end.how !== 0) throw new Error(`The node ended with ${end.how}, not 0.`);
}

async function read() {
  const text = await call('/streams/parcels/0', { status: 200 });
  if (!text.includes('Oslo')) throw new Error(`The event is not what was written: ${text}`);
}

try {
  await withNode(async () => {
    const headers = { 'content-type': 'application/vnd.eventstore.events+json' };
    await call('/streams/parcels', { method: 'POST', headers, body: JSON.stringify([EVENT]), status: 201 });
    await read();
    if (!(await call('/ui', { status: 200 })).includes('<html')) throw new Error('/ui is not the page.');
    const { scavengeId } = JSON.parse(await call('/admin/scavenge', { method: 'POST', status: 200 }));
    await until('the scavenge has not ended', async () => {
      const last = JSON.parse(await call('/admin/scavenge/last', { status: 200 }));
      if (last.scavengeId !== scavengeId || last.scavengeResult === 'InProgress') return false;
      if (last.scavengeResult !== 'Success') throw new Error(`The scavenge ended as ${JSON.stringify(last)}.`);
      return true;
    });
  });
  await withNode(read);
  console.log('The first minute passed.');
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
}
