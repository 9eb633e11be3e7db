// dist/testing.cjs: for `require('skua/testing')`. Jest loads what tests require into a context of their own, file by file, which a program of this size would pay for each
// time, and it can't load ES modules there; Node.js itself can, once for all files of a process.
'use strict';

const { createRequire } = process.getBuiltinModule('node:module');

module.exports = createRequire(__filename)('./testing.js');
