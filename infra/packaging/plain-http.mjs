// `import` of a module of Node.js asks it for all its names. Of `node:http` some are those of the client behind
// `fetch`, which is loaded for that: a third of what Node.js takes to start. What bundles import of it is read from the
// module itself instead, without those.
import * as http from 'node:http';

const names = Object.entries(Object.getOwnPropertyDescriptors(http.default))
  .filter(([, { get }]) => get === undefined)
  .map(([name]) => name);

/** A plugin of esbuild. */
export const PLAIN_HTTP = {
  name: 'plain-http',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^(node:)?http$/ }, ({ kind }) =>
      kind === 'require-call' ? undefined : { path: 'node:http', namespace: 'plain', sideEffects: false },
    );
    onLoad({ filter: /./, namespace: 'plain' }, () => ({
      contents: `const http = process.getBuiltinModule('node:http');
export default http;
export const { ${names.join(', ')} } = http;`,
    }));
  },
};
