import { readFile } from 'node:fs/promises';

/** Programs ask a `package.json` for name and version: esbuild would put all of it into their bundles. */
export const SHORT_PACKAGE = {
  name: 'short-package',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]package\.json$/ }, async ({ path }) => {
      const { name, version } = JSON.parse(await readFile(path, 'utf8'));
      return { contents: JSON.stringify({ name, version }), loader: 'json' };
    });
  },
};
