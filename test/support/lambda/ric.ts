import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import * as path from 'node:path';

/**
 * The client of the runtime interface that the platform itself uses. It compiles C++ when it is installed, so it is no
 * dependency of the project.
 */
const PACKAGE = 'aws-lambda-ric';
const VERSION = '4.0.2';
const INSTALL_MS_MAX = 900_000;

export type Ric =
  | { readonly command: (folder: string) => readonly [string, ...string[]]; readonly reason: null }
  | { readonly command: null; readonly reason: string };

/** Installs it into a cache of the user, once. */
function findRic(): Ric {
  if (process.env['RIC'] !== '1') return { command: null, reason: 'RIC=1 asks for it' };
  const cache = path.join(
    process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'),
    'skua',
    `${PACKAGE}-${VERSION}`,
  );
  const client = path.join(cache, 'node_modules', PACKAGE, 'index.mjs');
  const isBuilt = () => existsSync(path.join(cache, 'node_modules', PACKAGE, 'rapid-client.node'));
  if (!isBuilt()) {
    const missing = ['g++', 'cmake', 'make', 'python3'].filter((tool) => !isThere(tool));
    if (missing.length > 0)
      return { command: null, reason: `it compiles C++, and ${missing.join(', ')} is not installed` };
    mkdirSync(cache, { recursive: true });
    writeFileSync(
      path.join(cache, 'package.json'),
      JSON.stringify({ private: true, allowScripts: { [PACKAGE]: true } }),
    );
    try {
      execFileSync('npm', ['install', '--no-audit', '--no-fund', `${PACKAGE}@${VERSION}`], {
        cwd: cache,
        stdio: 'pipe',
        timeout: INSTALL_MS_MAX,
      });
    } catch (error) {
      return {
        command: null,
        reason: `it could not be installed: ${String((error as { stderr?: Buffer }).stderr ?? error)
          .split('\n')
          .filter((line) => line.includes('error'))
          .slice(0, 2)
          .join(' ')}`,
      };
    }
    if (!isBuilt()) return { command: null, reason: `its native part was not built in ${cache}` };
  }
  return { command: (folder) => [process.execPath, client, path.join(folder, 'index.handler')], reason: null };
}

function isThere(tool: string): boolean {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export const ric = findRic();
