const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { test } = require('node:test');
const vm = require('node:vm');
const client = require('@eventstore/db-client');

// As Jest has it: what a file of tests requires runs in a context of its own, which shares with Node.js what that has
// inside, and what buffers are made of. The class of modules is a copy there.

const OWN = new Set(
  vm
    .runInNewContext('Object.getOwnPropertyNames(globalThis)')
    .filter((name) => !['ArrayBuffer', 'Uint8Array'].includes(name)),
);

class ModuleOfContext extends Module {}

class Context {
  globals = vm.createContext(
    Object.fromEntries(
      Object.getOwnPropertyNames(globalThis)
        .filter((name) => !OWN.has(name))
        .map((name) => [name, globalThis[name]]),
    ),
  );
  #loaded = new Map();

  require(name, from = __filename) {
    if (Module.isBuiltin(name)) return /^(?:node:)?module$/.test(name) ? ModuleOfContext : require(name);
    const file = Module.createRequire(from).resolve(name);
    const known = this.#loaded.get(file);
    if (known !== undefined) return known.exports;
    const module = { exports: {} };
    this.#loaded.set(file, module);
    const run = vm.compileFunction(
      readFileSync(file, 'utf8'),
      ['module', 'exports', 'require', '__filename', '__dirname'],
      { filename: file, parsingContext: this.globals },
    );
    run(module, module.exports, (wanted) => this.require(wanted, file), file, path.dirname(file));
    return module.exports;
  }
}

const own = new Context();
own.require('./suite.cjs').suite({ test, testing: own.require('skua/testing'), client });

test('contexts share one program, and have objects of their own', () => {
  const [one, other] = [new Context(), new Context()];
  assert.equal(one.require('skua/testing').startTestNode, other.require('skua/testing').startTestNode);
  assert.notEqual(one.require('./suite.cjs').suite, other.require('./suite.cjs').suite);
  assert.notEqual(vm.runInContext('Object', one.globals), Object);
});

test('a context whose timers stand still stops no node', async () => {
  const still = new Context();
  for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask']) still.globals[name] = () => 0;
  const node = await still.require('skua/testing').startTestNode({ seed: { a: [{ type: 'x' }] }, users: true });
  await node.advanceTime({ days: 2 });
  await node.scavenge();
  await node.reset();
  assert.equal((await fetch(`${node.url}/streams/a`)).status, 401);
  await node.stop();
});
