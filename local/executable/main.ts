import { createRequire } from 'node:module';
import { homedir, tmpdir } from 'node:os';
import * as path from 'node:path';
import { getAsset, getRawAsset } from 'node:sea';
import { NotUnpacked, touch, unpack } from './unpack.ts';
import type { Manifest } from './unpack.ts';

/** Where the single executable begins: it has the bundles in it as files are in an archive, and runs `dist/main.js` from where it puts them. */

const TOUCH_EVERY_MS = 6 * 3_600_000;
/** The code of `EXIT.refused`, which no service manager tries again. */
const REFUSED = 4;

/** Empty for a user without one. */
function homeOf(): string {
  try {
    return homedir();
  } catch {
    return '';
  }
}

const manifest = JSON.parse(getAsset('manifest.json', 'utf8')) as Manifest;
try {
  const folder = unpack(manifest, (name) => new Uint8Array(getRawAsset(name)), { env: process.env, home: homeOf(), temp: tmpdir(), uid: process.getuid!(), nowMs: Date.now() });
  setInterval(() => touch(folder, manifest, Date.now()), TOUCH_EVERY_MS).unref();
  // What the executable itself has in it can only import what Node.js has in it; a file can import files.
  createRequire(path.join(folder, 'start.cjs'))('./start.cjs');
} catch (error) {
  if (!(error instanceof NotUnpacked)) throw error;
  process.stderr.write(`error ${error.code}: ${error.message}\n`);
  process.exitCode = REFUSED;
}
