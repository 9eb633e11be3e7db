// What other programs import of the package: `skua/embedded` is local/embedded/index.ts. One more is one more word here, and its lines under `exports` in
// package.json. Bundles and declarations are made of these (esbuild.config.mjs, types.mjs), and a test compares them with `exports`.

/** Folders below local/. */
export const SURFACES = ['embedded', 'emmett'];

/** Packages that a program brings itself, where it imports a surface that is made for them: they are not in the bundles. */
export const PEERS = ['@event-driven-io/emmett'];

/** Names under which this checkout has packages that a program knows by another, since it holds two of their releases. */
export const ALIASES = { 'emmett-current': '@event-driven-io/emmett' };

/** Source of a surface, from the checkout's folder. */
export function sourceOf(surface) {
  return `local/${surface}/index.ts`;
}

/** What package.json says under `exports`. */
export function exportsOf() {
  const entries = SURFACES.map((surface) => [`./${surface}`, { types: `./dist/types/local/${surface}/index.d.ts`, default: `./dist/${surface}.js` }]);
  return { ...Object.fromEntries(entries), './package.json': './package.json' };
}
