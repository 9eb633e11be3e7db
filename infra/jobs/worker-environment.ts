import { fileURLToPath } from 'node:url';

/** Where the code of workers is kept as Node.js compiles it. */
const CODE_CACHE = new URL('../../node_modules/.cache/skua', import.meta.url);

/**
 * A worker that runs TypeScript finds it stripped of its types where an earlier one left it: the stripper would take
 * another 25 MiB for its thread. Where nothing can be kept it is stripped again; a bundle needs none of this.
 */
export function environmentOf(workerUrl: URL): NodeJS.ProcessEnv {
  return workerUrl.pathname.endsWith('.ts')
    ? { NODE_COMPILE_CACHE: fileURLToPath(CODE_CACHE), ...process.env }
    : process.env;
}
