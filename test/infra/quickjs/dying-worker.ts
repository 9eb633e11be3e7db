import { parentPort, workerData } from 'node:worker_threads';
import type { FromWorker, SandboxSetup, ToWorker } from '../../../infra/quickjs/script-messages.ts';
import { ThreadSignal } from '../../../infra/quickjs/script-messages.ts';

/** A worker that skips every request, and ends in the middle of those whose text is `die`. */
const signal = new ThreadSignal((workerData as SandboxSetup).signal);
const send = (message: FromWorker): void => parentPort!.postMessage(message);

parentPort!.on('message', (message: ToWorker) => {
  if (message.kind === 'release') return;
  message.runs.forEach((run, i) => {
    signal.begin(message.firstRun + i);
    if (run.requestJson === 'die') process.exit(1);
    signal.end();
  });
  send({ kind: 'results', results: message.runs.map(() => ({ kind: 'skipped', cpuMs: 0 })) });
});
send({ kind: 'ready' });
