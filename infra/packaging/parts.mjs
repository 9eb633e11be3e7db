// Which modules that are imported late come as one part of a bundle. esbuild makes a file of each such module, and of
// what each set of them shares: hundreds, of which an install writes each three times, and a start opens a hundred. So what
// is imported late stays late, and comes with what is wanted with it, or is like it. A part runs as a whole when the
// first of it is asked for: what does something when it is imported can't be in one.
//
// What several parts share would be a file for each set of them. Where all of them ask for the same modules first these
// are one file: small ones, and those that are loaded at the start in any case.
import { readFile } from 'node:fs/promises';
import * as path from 'node:path';
import { build } from 'esbuild';
import { PLAIN_HTTP } from './plain-http.mjs';
import { SHORT_PACKAGE } from './short-package.mjs';

/** Of the AWS SDK what few calls need: credentials that are not in the environment, streams of events. */
const SDK_RARELY = [
  '@aws-sdk/credential-provider-env',
  '@aws-sdk/credential-provider-http',
  '@aws-sdk/credential-provider-ini',
  '@aws-sdk/credential-provider-login',
  '@aws-sdk/credential-provider-process',
  '@aws-sdk/credential-provider-sso',
  '@aws-sdk/credential-provider-web-identity',
  '@aws-sdk/nested-clients/signin',
  '@aws-sdk/nested-clients/sso-oidc',
  '@aws-sdk/nested-clients/sts',
  '@smithy/core/event-streams',
  '@smithy/credential-provider-imds',
  'bowser',
  'node_modules/@aws-sdk/credential-provider-sso/dist-es/loadSso.js',
];

/** Of OpenTelemetry, in the two versions that its packages bring: one of each is wanted, by the system. */
const MACHINE_IDS = ['', 'sdk-trace-base/node_modules/@opentelemetry/'].flatMap((within) =>
  ['bsd', 'darwin', 'linux', 'unsupported', 'win'].map(
    (system) =>
      `node_modules/@opentelemetry/${within}resources/build/esm/detectors/platform/node/machine-id/getMachineId-${system}.js`,
  ),
);

/** Parts of a function: modules by their paths in the checkout, and packages by their names. */
export const FUNCTION_PARTS = {
  s3: ['infra/s3/s3-objects.ts', '@aws-sdk/client-s3'],
  sdk: SDK_RARELY,
};

/** Parts of the program, and of what shares them with it. */
export const PROGRAM_PARTS = {
  ...FUNCTION_PARTS,
  node: [
    'local/commands/run-start.ts',
    'local/config/load-config.ts',
    'local/config/yaml.ts',
    'local/testing/test-node.ts',
    'local/testing/test-options.ts',
  ],
  bucket: ['local/cluster/open-member.ts', 'local/embedded/open-bucket.ts', 'local/on-objects/open-on-objects.ts'],
  repositories: ['core/backup/repository/repository.ts', 'infra/objects/open-objects.ts'],
  certificates: ['local/tls/dev-certificate.ts', 'local/tls/load-certificates.ts'],
  // Not with `@peculiar/x509`, which wants another package to be there when it runs.
  asn1: ['@peculiar/asn1-pfx', '@peculiar/asn1-schema'],
  tracing: ['local/tracing/call-spans.ts', 'local/tracing/sdk.ts', 'local/tracing/server-spans.ts'],
  // Not with what imports them: a package that is no ES module asks for that, and whatever it leads to is wrapped then.
  'machine-ids': MACHINE_IDS,
  // Those of a backup need a store.
  jobs: [
    'core/index/jobs/jobs.ts',
    'core/integrity/jobs/jobs.ts',
    'core/log/scrub/scrub.ts',
    'core/scavenge/jobs/jobs.ts',
  ],
  // Commands that only ask a node or a repository, none of which loads a store, and those that open one.
  asking: commands(
    'auto-scavenge backup cluster-status cluster-try demo explain functions-serve indexes read redact scavenge',
    'streams subscriptions webhook-send webhook-test',
  ),
  opening: [
    'core/backup/create/create.ts',
    'core/backup/drill/drill.ts',
    'core/backup/format.ts',
    'core/backup/prune/prune.ts',
    'core/backup/verify/verify.ts',
    'core/cluster/membership/format.ts',
    'core/index/format.ts',
    'core/integrity/format.ts',
    'core/log/format.ts',
    'core/security/format.ts',
    'core/shared-log/dry-runs/dry-runs.ts',
    'core/shared-log/files/files.ts',
    'core/shared-log/format.ts',
    'core/shared-log/shared-log.ts',
    'core/shared-log/tick/format.ts',
    'handlers/scavenging/scavenge-routes.ts',
    'infra/fs/format.ts',
    'infra/jobs/worker-jobs.ts',
    'infra/runtime/temporary-storage.ts',
    'infra/sqlite/format.ts',
    'infra/sqlite/scavenge-states.ts',
    'local/audit/command-audit.ts',
    'local/backup/source.ts',
    'local/log/format.ts',
    'local/log/logger.ts',
    'local/on-objects/open-for-inspection.ts',
    'local/store/open-directory.ts',
    ...commands(
      'backup-copy cluster-reset inspect proof-export proof-verify prove-erased restore scavenge-offline user verify',
    ),
  ],
};

function commands(...names) {
  return names.flatMap((line) => line.split(' ')).map((name) => `local/commands/run-${name}.ts`);
}

const LATE = /(?<!typeof )\bimport\(\s*(['"])([^'"]+)\1\)/g;
const SOURCE = /\.(?:ts|m?js)$/;

/** Path of a module from the checkout's folder, also where its `node_modules` is a link. */
function nameOf(root, file) {
  const at = file.indexOf(`${path.sep}node_modules${path.sep}`);
  return (at < 0 ? path.relative(root, file) : file.slice(at + 1)).replaceAll(path.sep, '/');
}

/** The plugin of esbuild that makes them, of names of modules by the name of their part; `into` asks for `shared` first. */
function together(parts, { shared, into }) {
  const partOf = new Map(Object.entries(parts).flatMap(([part, names]) => names.map((name) => [name, part])));
  const first = shared.length > 0 ? `import 'shared:all';` : '';
  return {
    name: 'together',
    setup({ initialOptions, onLoad, onResolve }) {
      const root = initialOptions.absWorkingDir ?? process.cwd();
      onLoad({ filter: SOURCE }, async ({ path: file }) => {
        const text = await readFile(file, 'utf8');
        const late = text.replaceAll(LATE, (whole, _quote, wanted) => {
          const name = wanted.startsWith('.') ? nameOf(root, path.resolve(path.dirname(file), wanted)) : wanted;
          const part = partOf.get(name);
          return part === undefined ? whole : `import('part:${part}').then((part) => part[${JSON.stringify(name)}])`;
        });
        const contents = into.has(nameOf(root, file)) ? `${first}${late}` : late;
        return contents === text ? undefined : { contents, loader: file.endsWith('.ts') ? 'ts' : 'js' };
      });
      onResolve({ filter: /^(part|shared):/ }, ({ path: name }) => {
        const [namespace, part] = name.split(':');
        return { path: part, namespace };
      });
      onLoad({ filter: /./, namespace: 'part' }, ({ path: part }) => ({
        contents: [
          into.has(`part:${part}`) ? first : '',
          ...parts[part].map((name) => `export * as ${JSON.stringify(name)} from ${asked(name)};`),
        ].join('\n'),
        resolveDir: root,
      }));
      onLoad({ filter: /./, namespace: 'shared' }, () => ({
        contents: shared.map((name) => `import ${asked(name)};`).join('\n'),
        resolveDir: root,
      }));
    },
  };
}

function isOurs(name) {
  return name.endsWith('.ts');
}

function asked(name) {
  return JSON.stringify(/\.(?:ts|js)$/.test(name) ? `./${name}` : name);
}

/**
 * Builds in parts: once to see what they share, and once with that in one file, for all entry points but `without`.
 * `isShared` says of a file that several parts share, its name and the metafile's `outputs`, whether it goes there.
 */
export async function buildInParts({ parts, without = [], isShared, ...options }) {
  const buildWith = (wanted, more) =>
    build({
      ...options,
      ...more,
      bundle: true,
      splitting: true,
      platform: 'node',
      format: 'esm',
      metafile: true,
      plugins: [SHORT_PACKAGE, PLAIN_HTTP, together(parts, wanted)],
    });
  const { metafile } = await buildWith({ shared: [], into: new Set() }, { write: false });
  const modulesOf = (entry) => parts[/^part:(.*)/.exec(entry)?.[1]] ?? [entry];
  const entries = Object.values(metafile.outputs).flatMap(({ entryPoint }) => entryPoint ?? []);
  const into = new Set(entries.filter((entry) => !without.includes(entry) && modulesOf(entry).some(isOurs)));
  return buildWith({ shared: sharedModules(metafile, isShared), into });
}

/** Modules of ours in files that are shared, but those that import one that is not, which would come with them. */
function sharedModules({ inputs, outputs }, isShared) {
  const goes = new Map();
  for (const [file, { entryPoint, inputs: within }] of Object.entries(outputs))
    for (const name of Object.keys(within)) goes.set(name, entryPoint === undefined && isShared(file, outputs));
  const stays = ({ path: name, kind }) => kind === 'import-statement' && goes.get(name) === false;
  const shared = new Set([...goes.keys()].filter((name) => goes.get(name) && isOurs(name)));
  for (let before = -1; before !== shared.size;) {
    before = shared.size;
    for (const name of shared)
      if (inputs[name].imports.some(stays)) {
        shared.delete(name);
        goes.set(name, false);
      }
  }
  return [...shared].sort();
}
