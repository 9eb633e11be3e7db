// dist/testing.cjs: for `require('skua/testing')`. Jest loads what tests require into a context of their own, file by
// file, which a program of this size would pay for each time, and it loads no ES modules there. So Node.js itself does
// it, once for all files of a process: by `require` of a module that Jest knows nothing of.
'use strict';

require('./node-check.cjs');

const Module = require('node:module');
const { join } = require('node:path');

module.exports = new Module(__filename).require(join(__dirname, 'testing.js'));
