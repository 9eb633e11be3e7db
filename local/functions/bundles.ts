import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CommandError } from '../cli/failure.ts';
import { EXIT } from '../cli/io.ts';
import type { Output } from '../cli/io.ts';
import { FUNCTION_NAMES } from './serve.ts';

const ROOT = new URL('../../', import.meta.url);

/** Folder of the bundles: of the project, or in an installed package beside the one that this file is in. */
export function bundlesFolder(): string {
  const here = fileURLToPath(import.meta.url);
  return here.endsWith('.ts') ? fileURLToPath(new URL('dist/functions', ROOT)) : path.join(path.dirname(here), 'functions');
}

/** The bundles that are not there. */
export function missingBundles(folder: string): readonly string[] {
  return FUNCTION_NAMES.map((name) => path.join(folder, name, 'index.mjs')).filter((file) => !existsSync(file));
}

/** Builds what is missing, or all. Rejects with a CommandError that says why it can't. */
export async function ensureBundles(folder: string, always: boolean, output: Output): Promise<void> {
  const missing = missingBundles(folder);
  if (missing.length === 0 && !always) return;
  const script = fileURLToPath(new URL('esbuild.config.mjs', ROOT));
  if (!existsSync(script) || !fileURLToPath(import.meta.url).endsWith('.ts')) {
    throw new CommandError('bundles_missing', `${missing[0] ?? folder} can't be built here: that takes the project's sources. Run the command in a checkout, or install the package again.`, EXIT.failed);
  }
  output.write(`${missing.length > 0 && !always ? `${missing[0]} is not there: building the functions.` : 'Building the functions.'}\n`);
  await build(script, output);
  const still = missingBundles(folder);
  if (still.length > 0) throw new CommandError('bundles_missing', `The build has ended, but ${still[0]} is not there. Look at what it printed.`, EXIT.failed);
}

async function build(script: string, output: Output): Promise<void> {
  const child = spawn(process.execPath, [script, '--functions'], { stdio: ['ignore', 'pipe', 'pipe'], cwd: path.dirname(script) });
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => { output.write(text); });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new CommandError('build_failed', 'The functions could not be built; what is wrong stands above. After a change of dependencies run `npm ci` first.', EXIT.failed);
}
