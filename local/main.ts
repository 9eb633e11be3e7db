#!/usr/bin/env node
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// Node.js strips the sources of their types and compiles them: what it made of them once is found by the starts that follow. Where
// nothing can be kept it does so each time.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/skua', import.meta.url)));

await import('./program.ts');
