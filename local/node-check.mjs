// dist/node-check.js, and .cjs for `require`: what programs import of the package begins with it (esbuild.config.mjs), so
// that an older Node.js says what is wrong and not which of its parts is missing.
import { checkNode } from './node-version.mjs';

checkNode();
