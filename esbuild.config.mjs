// Bundles for an installed package, where Node.js does not run TypeScript: the command line and the entry points of
// worker threads, side by side, with packages outside, installed as dependencies. And the functions, with packages
// inside. `--functions` builds only those, beside what is there.
import { rm } from 'node:fs/promises';
import { build } from 'esbuild';
import { buildFunctions, sizeLines, sizeProblems } from './infra/aws/build.mjs';

if (!process.argv.includes('--functions')) {
  await rm('dist', { recursive: true, force: true });
  await build({
    entryPoints: { main: 'local/program.ts', worker: 'infra/jobs/worker.ts', 'sandbox-worker': 'infra/quickjs/worker.ts' },
    outdir: 'dist',
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    packages: 'external',
    sourcemap: true,
    logLevel: 'info',
  });
}

const sizes = await buildFunctions();
console.log(['', ...sizeLines(sizes), ''].join('\n'));
for (const problem of sizeProblems(sizes)) {
  console.error(problem);
  process.exitCode = 1;
}
