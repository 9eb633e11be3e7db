// Bundles for an installed package, where Node.js does not run TypeScript: the command line and the entry points of
// worker threads, side by side. Packages stay outside and are installed as dependencies.
import { rm } from 'node:fs/promises';
import { build } from 'esbuild';

await rm('dist', { recursive: true, force: true });
await build({
  entryPoints: { main: 'local/main.ts', worker: 'infra/jobs/worker.ts', 'sandbox-worker': 'infra/quickjs/worker.ts' },
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  packages: 'external',
  sourcemap: true,
  logLevel: 'info',
});
