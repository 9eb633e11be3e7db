// dist/main.js: where an installed package and the archive begin. It only looks whether the Node.js is new enough,
// which the program itself would tell by an error of its own: `No such built-in module`.
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
import { isNewEnough, refuseNode } from './node-version.mjs';

if (!isNewEnough())
  refuseNode(
    'Start it with a newer one: install Node.js 24 from your system or from nodejs.org, and name its path where this one is named (ExecStart of a service).',
  );

// What was compiled once is found by the starts that follow, where the package's folder can be written; else it is
// compiled each time.
nodeModule.enableCompileCache(fileURLToPath(new URL('.cache', import.meta.url)));

// As in a checkout (main.ts says why).
process.env['UV_THREADPOOL_SIZE'] ??= '12';

await import('./program.ts');
