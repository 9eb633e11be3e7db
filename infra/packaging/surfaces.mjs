// What other programs import of the package: `skua/embedded` is local/embedded/index.ts. One more is one more word
// here, and its lines under `exports` in package.json. Bundles and declarations are made of these (esbuild.config.mjs,
// types.mjs), and a test compares them with `exports`.

/** Folders below local/. */
export const SURFACES = [
  'embedded',
  'testing',
  'emmett',
  'dcb',
  'client',
  'events',
  'project',
  'project-postgres',
  'project-sqlite',
];

/**
 * Those of them that run wherever there is `fetch`: browsers, the edge, any version of any runtime. Each is one file
 * that imports nothing (neutral.mjs).
 */
export const NEUTRAL = ['client', 'events', 'project', 'project-postgres', 'project-sqlite'];

/**
 * Packages that a program brings itself, where it imports a surface that is made for them: they are not in the bundles.
 */
export const PEERS = ['@event-driven-io/emmett', '@dcb-es/event-store'];

/**
 * Other names that the sources have for them: two versions of Emmett are installed here, since another package wants an
 * older one.
 */
export const PEER_NAMES = { 'emmett-current': '@event-driven-io/emmett' };

/**
 * Surfaces that programs may also ask for by `require`, with a file of their own for that: local/testing/testing.cjs is
 * dist/testing.cjs.
 */
export const REQUIRED = ['testing'];

/** Source of a surface, from the checkout's folder. */
export function sourceOf(surface) {
  return `local/${surface}/index.ts`;
}

/** What package.json says under `exports`. */
export function exportsOf() {
  const entries = SURFACES.map((surface) => [
    `./${surface}`,
    {
      types: `./dist/types/local/${surface}/index.d.ts`,
      ...(REQUIRED.includes(surface) && { require: `./dist/${surface}.cjs` }),
      default: `./dist/${surface}.js`,
    },
  ]);
  return { ...Object.fromEntries(entries), './package.json': './package.json' };
}
