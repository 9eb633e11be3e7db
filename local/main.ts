#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// Node.js strips the sources of their types and compiles them: what it made of them once is found by the starts that
// follow. Where nothing can be kept it does so each time.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/skua', import.meta.url)));

// A sync on a slow disk takes a thread as long as it lasts. With the usual four, some of them would hold up every read
// and every password that is checked.
process.env['UV_THREADPOOL_SIZE'] ??= '12';

await import('./program.ts');
