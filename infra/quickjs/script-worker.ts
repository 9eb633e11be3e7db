import { parentPort, workerData } from 'node:worker_threads';
import { background } from '../../core/base/background.ts';
import { CallHost, ScriptRunner } from './script-runner.ts';
import type { FromWorker, RunResult, SandboxSetup, ToWorker } from './script-messages.ts';
import { ThreadSignal } from './script-messages.ts';

/**
 * A worker that has been busy for so long takes no further run of the same message, so that other connectors get their
 * turn.
 */
const TURN_MS = 5;

const port = parentPort!;
const { module, limits, signal: shared } = workerData as SandboxSetup;
const signal = new ThreadSignal(shared);
const runner = new ScriptRunner(module, new CallHost(limits.timeoutMs), limits);

function send(message: FromWorker): void {
  port.postMessage(message);
}

async function runAll({ connectorId, script, firstRun, runs }: Extract<ToWorker, { kind: 'run' }>): Promise<void> {
  if (script !== null) runner.learn(connectorId, script);
  const results: RunResult[] = [];
  const started = performance.now();
  for (const run of runs) {
    runner.tidy();
    await runner.ready();
    signal.begin(firstRun + results.length);
    results.push(runner.run(connectorId, run));
    signal.end();
    if (performance.now() - started >= TURN_MS) break;
  }
  send({ kind: 'results', results });
}

port.on('message', (message: ToWorker) => {
  if (message.kind === 'release') runner.release(message.connectorId);
  else background(runAll(message));
});

background(runner.ready().then(() => send({ kind: 'ready' })));
