import * as path from 'node:path';
import { systemClock } from '../../infra/clock.ts';
import type { Input } from '../cli/command.ts';
import { CommandError } from '../cli/failure.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { bundlesFolder, ensureBundles } from '../functions/bundles.ts';
import { serveFunctions } from '../functions/serve.ts';
import type { ServedFunctions } from '../functions/serve.ts';
import type { serveOptions } from './functions.ts';

/** Serves the bundles until it is interrupted. */
export async function runFunctionsServe({ options }: Input<typeof serveOptions>, io: Io, signal?: AbortSignal): Promise<ExitCode> {
  const bundles = bundlesFolder();
  await ensureBundles(bundles, options.build, io.stderr);
  const storage = placeOf(options.storage);
  const served = await listen(options.port, () => serveFunctions({
    bundles, port: options.port, instancesMax: options.instances, clock: systemClock, ticks: !options['no-ticks'],
    env: { SERVER_ALLOW_DEFAULT_PASSWORDS: 'true', ...io.env, SERVER_STORAGE: storage },
    onOutput: (name, text) => { for (const each of text.split('\n')) if (each !== '') line(io.stderr, `${name.padEnd(7)} ${each}`); },
  }));
  line(io.stdout, `The functions answer at ${served.url}, with their data in ${storage}`);
  line(io.stdout, options['no-ticks'] ? `POST ${served.url}/tick runs a tick.` : `A tick runs every minute, and at POST ${served.url}/tick.`);
  await interrupted(signal);
  await served.close();
  return EXIT.ok;
}

/** Functions work in folders of their own, so a directory is named in full. */
function placeOf(storage: string): string {
  return storage.startsWith('s3://') ? storage : path.resolve(storage);
}

async function listen(port: number, start: () => Promise<ServedFunctions>): Promise<ServedFunctions> {
  try {
    return await start();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new CommandError('port_in_use', `Port ${port} is in use on 127.0.0.1. Choose another with --port, or 0 for any free one.`, EXIT.unreachable);
  }
}

/** Resolves with the first Ctrl+C or SIGTERM; nothing that is acknowledged is in memory only, so the second one may end the process. */
function interrupted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, end);
      resolve();
    };
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, end);
    signal?.addEventListener('abort', end);
    if (signal?.aborted === true) end();
  });
}
