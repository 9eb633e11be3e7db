import { fileURLToPath } from 'node:url';
import about from '../../package.json' with { type: 'json' };

export const VERSION: string = about.version;

/**
 * Where the build put a file: worker threads and the like lie in the folder of the bundle. Null where the sources run
 * as they are.
 */
export function bundled(file: string): URL | null {
  return fileURLToPath(import.meta.url).endsWith('.ts') ? null : new URL(file, import.meta.url);
}

/** Where the threads of jobs find their module; without it they look beside the one that starts them. */
export function bundledWorker(): { workerUrl?: URL } {
  const workerUrl = bundled('./worker.js');
  return workerUrl === null ? {} : { workerUrl };
}
