import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isSkuaError } from '../../core/base/errors.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import { refuseNodeData } from '../../infra/fs/strangers.ts';
import { parseLocation } from '../../infra/objects/open-objects.ts';
import { systemClock } from '../../infra/system-clock.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io, Output } from '../../infra/runtime/io.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import { FUNCTION_NAMES, serveFunctions } from '../functions/serve.ts';
import type { FunctionName, ServedFunctions } from '../functions/serve.ts';
import { bundled } from '../../infra/runtime/version.ts';
import type { functionsServeOptions } from './options-command.ts';

/** Serves the functions until it is interrupted. */
export async function runFunctionsServe({ options }: Input<typeof functionsServeOptions>, io: Io): Promise<ExitCode> {
  const location = placeOf(options.storage);
  if (location.kind === 'directory') await refuseNodeData(location.path);
  const storage = location.kind === 's3' ? options.storage : location.path;
  await ensureFunctions(options.build, io.stderr);
  const served = await listen(options.port, () =>
    serveFunctions({
      moduleOf: functionModule,
      port: options.port,
      instancesMax: options.instances,
      clock: systemClock,
      ticks: !options['no-ticks'],
      env: { SERVER_ALLOW_DEFAULT_PASSWORDS: 'true', ...io.env, SERVER_STORAGE: storage },
      onOutput: (name, text) => {
        for (const each of text.split('\n')) if (each !== '') line(io.stderr, `${name.padEnd(7)} ${each}`);
      },
    }),
  );
  // A program that reads the line below may end this process at once.
  const interrupt = listenForInterrupt('', io);
  line(io.stdout, `The functions answer at ${served.url}, with their data in ${storage}`);
  line(
    io.stdout,
    options['no-ticks']
      ? `POST ${served.url}/tick runs a tick.`
      : `A tick runs every minute, and at POST ${served.url}/tick.`,
  );
  // Nothing that is acknowledged is in memory only, so a second one may end the process.
  await once(interrupt.signal, 'abort');
  await served.close();
  interrupt.release();
  return EXIT.ok;
}

/** Functions work in folders of their own, so a directory is named in full. */
function placeOf(storage: string): ObjectLocation {
  try {
    return parseLocation(storage);
  } catch (error) {
    if (isSkuaError(error, 'bad_option')) throw new UsageError(`--storage: ${error.message}`);
    throw error;
  }
}

async function listen(port: number, start: () => Promise<ServedFunctions>): Promise<ServedFunctions> {
  try {
    return await start();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new CommandError(
      'port_in_use',
      `Port ${port} is in use on 127.0.0.1. Choose another with --port, or 0 for any free one.`,
      EXIT.unreachable,
    );
  }
}

const ROOT = new URL('../../', import.meta.url);

/** Module of a function: its bundle in the project, or in an installed package that of all functions. */
export function functionModule(name: FunctionName): string {
  return fileURLToPath(bundled('./functions.js') ?? new URL(`dist/functions/${name}/index.mjs`, ROOT));
}

/** Builds the functions where one is missing, or `always`. Rejects with a CommandError that says why it can't. */
async function ensureFunctions(always: boolean, output: Output): Promise<void> {
  const missing = missingFunction();
  if (missing === undefined && !always) return;
  const script = fileURLToPath(new URL('esbuild.config.mjs', ROOT));
  if (!existsSync(script) || bundled('.') !== null) {
    throw new CommandError(
      'bundles_missing',
      missing === undefined
        ? "The functions of an installed package can't be built anew: that takes the project's sources. Leave --build out, or run the command in a checkout."
        : `${missing} is missing, and can't be built here: that takes the project's sources. Reinstall the package, or run the command in a checkout.`,
      EXIT.failed,
    );
  }
  output.write(
    `${missing !== undefined && !always ? `${missing} does not exist: building the functions.` : 'Building the functions.'}\n`,
  );
  await build(script, output);
  const still = missingFunction();
  if (still !== undefined)
    throw new CommandError(
      'bundles_missing',
      `The build has finished, but ${still} does not exist. Check its output.`,
      EXIT.failed,
    );
}

/** The first module that is not there. */
export function missingFunction(moduleOf = functionModule): string | undefined {
  return FUNCTION_NAMES.map(moduleOf).find((file) => !existsSync(file));
}

async function build(script: string, output: Output): Promise<void> {
  const child = spawn(process.execPath, [script, '--functions'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: path.dirname(script),
  });
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output.write(text);
    });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0)
    throw new CommandError(
      'build_failed',
      'The functions could not be built; see the output above. After a change of dependencies run `npm ci` first.',
      EXIT.failed,
    );
}
