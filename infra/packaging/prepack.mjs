// Before a package is packed: builds what it holds, and in a fresh clone first installs what that takes. All output
// goes to stderr, since stdout is that of `npm pack`.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

function run(program, words) {
  const { status, error } = spawnSync(program, words, { cwd: ROOT, stdio: ['ignore', 2, 2] });
  if (error !== undefined) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

try {
  createRequire(import.meta.url).resolve('esbuild');
} catch {
  run('npm', ['ci']);
}
run(process.execPath, ['esbuild.config.mjs']);
