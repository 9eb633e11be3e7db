import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type * as Embedded from '../../../local/embedded/index.ts';
import { NEUTRAL, REQUIRED, SURFACES } from '../../../infra/packaging/surfaces.mjs';
import { NODE_MIN } from '../../../local/node-version.mjs';
import { isTestedElsewhere, pages, programOf, programsOf } from '../guide-blocks.ts';
import { linkBeside, runProgram } from '../guide-runner.ts';
import { declaredMembers, ok, packed } from '../packed.ts';
import type { Packed } from '../packed.ts';
import { ROOT } from '../spawn.ts';
import { PASSWORD, ROOT_PEM, WITH_ROOT } from '../tls/pkcs12-files.ts';
import { storeTests } from './suite.ts';

/** `skua/embedded` as strangers get it: packed, installed, and imported by its name. */

/** Most of an install is files and bytes: npm unpacks a packed package three times. */
const FILES_MAX = 165;
const UNPACKED_BYTES_MAX = 9_200_000;

let all: Packed;
let embedded: typeof Embedded;

beforeAll(async () => {
  all = await packed();
  embedded = (await import(
    pathToFileURL(path.join(all.installed, 'node_modules/skua/dist/embedded.js')).href
  )) as typeof Embedded;
});
afterAll(() => all.remove());

describe('the packed package', () => storeTests(() => embedded));

/** A folder of a stranger beside the package's own, where the same package is found. */
function strangersFolder(name: string, packages: readonly string[]): string {
  const folder = path.join(all.installed, '..', name);
  mkdirSync(path.join(folder, 'node_modules'), { recursive: true });
  symlinkSync(path.join(all.installed, 'node_modules/skua'), path.join(folder, 'node_modules/skua'));
  for (const each of packages) {
    mkdirSync(path.dirname(path.join(folder, 'node_modules', each)), { recursive: true });
    symlinkSync(path.join(ROOT, 'node_modules', each), path.join(folder, 'node_modules', each));
  }
  return folder;
}

/** One that has brought itself what the surfaces for other packages are made for. */
function withPeers(name: string): string {
  const folder = strangersFolder(name, []);
  // Where a package is a link, what it imports is looked for where it leads to.
  rmSync(path.join(folder, 'node_modules/skua'));
  cpSync(path.join(all.installed, 'node_modules/skua'), path.join(folder, 'node_modules/skua'), { recursive: true });
  mkdirSync(path.join(folder, 'node_modules/@event-driven-io'));
  symlinkSync(
    path.join(ROOT, 'node_modules/emmett-current'),
    path.join(folder, 'node_modules/@event-driven-io/emmett'),
  );
  mkdirSync(path.join(folder, 'node_modules/@dcb-es'));
  symlinkSync(
    path.join(ROOT, 'node_modules/@dcb-es/event-store'),
    path.join(folder, 'node_modules/@dcb-es/event-store'),
  );
  return folder;
}

describe('a stranger', () => {
  test('installs it in an empty folder in seconds, without a compiler and without a network, as one package', () => {
    expect(readdirSync(path.join(all.installed, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      'skua',
    ]);
    expect(
      JSON.parse(readFileSync(path.join(all.installed, 'node_modules/skua/package.json'), 'utf8')),
    ).not.toHaveProperty('dependencies');
    expect(
      all.told.files.map((file) => file.path).filter((file) => file.endsWith('.node') || file.includes('binding.gyp')),
    ).toEqual([]);
  });

  test(`writes at most ${FILES_MAX} files and ${UNPACKED_BYTES_MAX / 1_000_000} MB`, () => {
    const { files } = all.told;
    const folders = Map.groupBy(files, ({ path: file }) => file.split('/').slice(0, -1).join('/'));
    expect(
      files.length,
      // A late import that no part has (infra/packaging/parts.mjs) is a file of its own, and often some more.
      [...folders].map(([folder, each]) => `${each.length} in ${folder}`).join(', '),
    ).toBeLessThanOrEqual(FILES_MAX);
    expect(files.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(UNPACKED_BYTES_MAX);
  });

  test('starts a node, and loads the functions, without the client behind fetch, which takes a third of a start', async () => {
    const program = `
      import { startTestNode } from 'skua/testing';
      const node = await startTestNode();
      await node.stop();
      await import('./node_modules/skua/dist/functions.js');
      const isLoaded = () => process.moduleLoadList.some((name) => name.endsWith('internal/deps/undici/undici'));
      const before = isLoaded();
      await fetch('data:,');
      console.log(JSON.stringify([before, isLoaded()]));`;
    const file = path.join(all.installed, 'loaded.mjs');
    writeFileSync(file, program);
    const { out } = await ok(all.shell(`node '${file}'`, { cwd: all.installed }).ended);
    // The second one tells that the name is still that of Node.js.
    expect(JSON.parse(out)).toEqual([false, true]);
  });

  test.each([
    [
      'nodenext, with @types/node',
      { module: 'nodenext', moduleResolution: 'nodenext', lib: ['es2022'], types: ['node'] },
      ['@types/node', 'undici-types'],
    ],
    [
      'bundler, with the types of browsers',
      { module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom'], types: [] },
      [],
    ],
  ] as const)('compiles against its declarations, strictly: %s', async (name, options, packages) => {
    const folder = strangersFolder(`types-${name.split(',')[0]}`, [...packages, 'zod']);
    writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(
      path.join(folder, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          target: 'es2022',
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: false,
          noEmit: true,
          ...options,
        },
        files: ['program.ts', 'events.mts'],
      }),
    );
    writeFileSync(path.join(folder, 'program.ts'), PROGRAM);
    // Typed events, as the guide shows them; only the console is no part of either platform's types alone.
    const { code } = programOf('local/guide/embed.md', 'skua/events');
    writeFileSync(
      path.join(folder, 'events.mts'),
      `declare const console: { log(...values: unknown[]): void };\n${code}`,
    );
    await ok(all.shell(`node ${path.join(ROOT, 'node_modules/typescript/bin/tsc')} -p .`, { cwd: folder }).ended);
    // What the types forbid is refused.
    writeFileSync(
      path.join(folder, 'program.ts'),
      "import { openStore } from 'skua/embedded';\nconst store = await openStore({ memory: true });\nawait store.append('a', { type: 'B' }, { expected: 'never' });\nexport {};\n",
    );
    expect(
      await all.shell(`node ${path.join(ROOT, 'node_modules/typescript/bin/tsc')} -p .`, { cwd: folder }).ended,
    ).toMatchObject({ code: 1, out: expect.stringContaining('program.ts(3,') as string });
  });

  test('may require it, and can import nothing but what is exported', async () => {
    const folder = strangersFolder('cjs', []);
    writeFileSync(
      path.join(folder, 'main.cjs'),
      `
      const { openStore, isSkuaError } = require('skua/embedded');
      const { version } = require('skua/package.json');
      openStore({ memory: true }).then(async (store) => {
        const refused = await store.append('', { type: 'X' }).catch((error) => isSkuaError(error, 'invalid_stream_name'));
        await store.close();
        const inside = (() => { try { require('skua/dist/main.js'); } catch (error) { return error.code; } })();
        const itself = await import('skua').catch((error) => error.code);
        console.log(JSON.stringify([version, refused, inside, itself]));
      });`,
    );
    const { version } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')) as { version: string };
    expect(JSON.parse((await ok(all.shell('node main.cjs', { cwd: folder }).ended)).out)).toEqual([
      version,
      true,
      'ERR_PACKAGE_PATH_NOT_EXPORTED',
      'ERR_PACKAGE_PATH_NOT_EXPORTED',
    ]);
  });

  test('has the other surfaces too: a test node, imported or required, and the event store of Emmett, which a program brings itself', async () => {
    const folder = withPeers('others');
    writeFileSync(
      path.join(folder, 'main.mjs'),
      `
      import { createRequire } from 'node:module';
      import { openStore } from 'skua/embedded';
      import { getSkuaEventStore } from 'skua/emmett';
      import { startTestNode } from 'skua/testing';
      const node = await startTestNode();
      const reply = await fetch(node.url + '/ping');
      const isSame = createRequire(import.meta.url)('skua/testing').startTestNode === startTestNode;
      await node[Symbol.asyncDispose]();
      const store = await openStore({ memory: true });
      const events = getSkuaEventStore(store);
      await events.appendToStream('order-1', [{ type: 'Placed', data: { total: 3 } }]);
      const { state } = await events.aggregateStream('order-1', { initialState: () => 0, evolve: (sum, { data }) => sum + data.total });
      await store.close();
      console.log(JSON.stringify([reply.status, isSame, state]));`,
    );
    expect(JSON.parse((await ok(all.shell('node main.mjs', { cwd: folder }).ended)).out)).toEqual([200, true, 3]);
  });

  test('has what its types promise exercised by the tests above: each member of the declarations occurs in them', () => {
    const declared = ['event-store', 'embedded']
      .map((folder) =>
        readFileSync(path.join(all.installed, `node_modules/skua/dist/types/local/${folder}/api.d.ts`), 'utf8'),
      )
      .join('\n');
    const suite =
      ['suite.ts', '../../event-store/contract.ts']
        .map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'))
        .join('\n') + PROGRAM;
    const members = declaredMembers(declared);
    expect(members.length).toBeGreaterThan(80);
    expect(members.filter((name) => !new RegExp(`\\b${name}\\b`).test(suite))).toEqual([]);
  });
});

/** Names every type, and uses members that the tests of the store have no other use for. */
const PROGRAM = `
import { startTestNode } from 'skua/testing';
import type { TestNode } from 'skua/testing';
import { CLIENT_ERRORS, connect } from 'skua/client';
import type { CallOptions, Client, ConnectOptions, EventStore, ServerAddress } from 'skua/client';
import { isSkuaError, openStore, SkuaError, STORE_ERRORS } from 'skua/embedded';
import type {
  AppendResult, BackupOptions, BackupResult, Checkpoint, DeleteOptions, ErasureFinding, ErasureProof, Expected, Explanation, Filter, LogEntry, NewEvent, OpenStoreOptions, Position, ProveErasedOptions, ReadAllOptions, ReadOptions, RecordedEvent,
  RecordedMetadata, ScavengeOptions, ScavengeProgress, ScavengeResult, SetMetadataOptions, Store, StoreErrorCode, StorePlace, StreamAccess, StreamAppend, StreamAppended, StreamInfo, StreamMetadata, SubscribeToAllOptions, SubscribeToStreamOptions,
} from 'skua/embedded';

const places: OpenStoreOptions[] = [
  { memory: true, onLog: ({ level, message, fields }: LogEntry) => void [level, message, fields] }, { directory: './data', chunkBytes: 1_048_576, cacheBytes: 1_048_576 },
  { bucket: 's3://a/b', endpoint: 'http://127.0.0.1:1', region: 'x', upkeep: false },
];
// @ts-expect-error one place only
const wrong: StorePlace = { memory: 'yes' };
const node: Promise<TestNode> = startTestNode({ seed: { 'order-1': [{ type: 'Placed' }] } });
void node;
interface Placed { readonly total: number }
const expected: Expected = 3;
const event: NewEvent = { type: 'Placed', data: { total: 1 } satisfies Placed };

const address: ServerAddress = { urls: ['https://one.example.com', 'https://two.example.com'] };
const connecting: ConnectOptions = { ...address, credentials: { username: 'a', password: 'b' }, headers: {}, timeoutMs: 1_000, fetch };
// @ts-expect-error no address
const nowhere: ConnectOptions = { timeoutMs: 1_000 };
export async function call(): Promise<unknown> {
  const options: CallOptions = { signal: AbortSignal.timeout(1_000) };
  const client: Client = connect(connecting);
  await client.append('order-1', event, { expected, ...options });
  const stores: readonly EventStore[] = [client, await openStore({ memory: true })];
  return [stores, CLIENT_ERRORS.unreachable, nowhere];
}

export async function use(): Promise<unknown> {
  const store: Store = await openStore(places[0]!);
  const result: AppendResult = await store.append('order-1', event, { expected });
  const signal: AbortSignal = new AbortController().signal;
  const reading: ReadOptions = { direction: 'backward', from: 'end', limit: 1, resolveLinks: false, signal };
  for await (const read of store.read<Placed>('order-1', reading)) {
    const total: number = read.data.total;
    const { createdAt, link, isRedacted, isJson }: RecordedEvent<Placed> = read;
    void [total, createdAt.getTime(), link?.position.commit, isRedacted, isJson];
  }
  const filter: Filter = { on: 'type', prefixes: ['P'] };
  const everything: ReadAllOptions = { from: result.position, filter, system: true };
  for await (const { position } of store.readAll(everything)) { const place: Position = position; void place; }
  const following: SubscribeToStreamOptions = { stream: 'order-1', after: 'end', signal, onCaughtUp() {} };
  const all: SubscribeToAllOptions = { after: 'start', onCheckpoint: ({ commit, prepare }) => void [commit, prepare] };
  void [store.subscribe(following), store.subscribe(all), store.subscribe()];
  const { checkpoint, end } = await store.checkpoint({ position: result.position });
  const reader: Checkpoint | null = checkpoint;
  void [reader?.epoch?.number, reader?.log, end];
  const deleting: DeleteOptions = { hard: true };
  await store.delete('order-1', deleting);
  const info: StreamInfo = await store.info('order-1');
  const access: StreamAccess = { read: ['a'], write: ['a'], delete: [], metadataRead: [], metadataWrite: [] };
  const metadata: StreamMetadata = { access };
  const setting: SetMetadataOptions = { expected: 'any' };
  await store.setMetadata('order-1', metadata, setting);
  const recorded: RecordedMetadata = await store.metadata('order-1');
  const scavenging: ScavengeOptions = { threads: 2, threshold: 1, throttlePercent: 100, onProgress: ({ phase, chunksDone, chunksTotal, bytesFreed }: ScavengeProgress) => void [phase, chunksDone, chunksTotal, bytesFreed] };
  const freed: ScavengeResult = await store.scavenge(scavenging);
  const explanation: Explanation = await store.explain('order-1');
  const asked: ProveErasedOptions = { stream: 'order-1', events: [] };
  const proof: ErasureProof = await store.proveErased(asked);
  const findings: readonly ErasureFinding[] = proof.findings;
  const backing: BackupOptions = { to: './backups', throttleBytesPerSecond: 1 };
  const backup: BackupResult = await store.backup(backing);
  const appends: StreamAppend[] = [{ stream: 'a', events: [event] }];
  const [appended]: readonly StreamAppended[] = (await store.appendToStreams(appends)).streams;
  store.failed.then((error: Error) => error.message);
  await store[Symbol.asyncDispose]();
  try {
    await store.close();
  } catch (error) {
    if (isSkuaError(error, 'store_closed')) { const code: string = error.code; void [code, error.data['x'], error instanceof SkuaError]; }
  }
  const code: StoreErrorCode = 'stream_deleted';
  return [STORE_ERRORS[code], info.state, recorded.version, freed.elapsedMs, explanation.kept[0]?.why, findings[0]?.offset, backup.bytesNew, appended, wrong];
}
`;

describe('under a Node.js that is too old', () => {
  /** As 20 says of itself. */
  const OLDER = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.20.2'}});Object.defineProperty(process,'version',{value:'v20.20.2'})`;

  test.each([
    ...SURFACES.filter((surface) => !NEUTRAL.includes(surface)).map((surface) => [
      surface,
      `await import('skua/${surface}')`,
    ]),
    ...REQUIRED.map((surface) => [
      `${surface} by require`,
      `(await import('node:module')).createRequire(import.meta.url)('skua/${surface}')`,
    ]),
  ])('skua/%s fails with a code that says so, and with the version that is wanted', async (name, load) => {
    const folder = withPeers(`too-old-${name.replaceAll(' ', '-')}`);
    writeFileSync(
      path.join(folder, 'main.mjs'),
      `try { ${load}; } catch ({ name, code, message, data }) { console.log(JSON.stringify([name, code, message, data])); }`,
    );
    const { out, err } = await ok(all.shell(`node --import "${OLDER}" main.mjs`, { cwd: folder }).ended);
    expect([JSON.parse(out), err]).toEqual([
      [
        'SkuaError',
        'node_too_old',
        expect.stringMatching(
          `^Skua needs Node\\.js ${NODE_MIN} or later, and this is v20\\.20\\.2 \\(.+\\)\\. Install`,
        ),
        { wanted: NODE_MIN },
      ],
      '',
    ]);
  });

  test('no part imports by name what Node.js 20 lacks, which would fail before any of it runs', () => {
    const dist = path.join(all.installed, 'node_modules/skua/dist');
    const missing: string[] = [];
    for (const file of readdirSync(dist).filter((name) => name.endsWith('.js')))
      for (const [, names, module] of readFileSync(path.join(dist, file), 'utf8').matchAll(
        /^import ?\{([^}]*)\} ?from ?"(?:node:)?([\w/]+)"/gm,
      ))
        for (const name of names!.split(',').map((each) => each.trim().split(' as ')[0]!))
          if (module === 'sqlite' || NEWER_THAN_20[module!]?.includes(name)) missing.push(`${file}: ${module}.${name}`);
    expect(missing).toEqual([]);
  });
});

/** What the modules of Node.js 22.16 have, and those of 20.0 have not. */
const NEWER_THAN_20: Readonly<Record<string, readonly string[]>> = {
  assert: ['partialDeepStrictEqual'],
  crypto: ['hash'],
  dns: ['getDefaultResultOrder', 'resolveTlsa'],
  events: ['addAbortListener'],
  fs: ['glob', 'globSync'],
  'fs/promises': ['glob'],
  http: ['CloseEvent', 'MessageEvent', 'WebSocket'],
  http2: ['performServerHandshake'],
  module: ['constants', 'enableCompileCache', 'findPackageJSON', 'flushCompileCache', 'getCompileCacheDir', 'register'],
  path: ['matchesGlob'],
  process: ['availableMemory', 'execve', 'finalization', 'getBuiltinModule', 'loadEnvFile', 'ref', 'unref'],
  stream: ['duplexPair'],
  tls: ['getCACertificates'],
  util: ['diff', 'getCallSite', 'getCallSites', 'getSystemErrorMessage', 'parseEnv', 'styleText'],
  vm: ['constants'],
  worker_threads: ['isInternalThread', 'isMarkedAsUntransferable', 'markAsUncloneable', 'postMessageToThread'],
  zlib: [
    'crc32',
    'createZstdCompress',
    'createZstdDecompress',
    'zstdCompress',
    'zstdCompressSync',
    'zstdDecompressSync',
  ],
};

/** The newest release that this was tried with; the checkout's own is between the two. */
const NODE_NEWEST = '26.10.0';

describe.each([NODE_MIN, NODE_NEWEST])('under Node.js %s', (version) => {
  let folder: string;
  let node: string;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'skua-under-'));
    writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ private: true, allowScripts: { node: true } }));
    // From the cache of packages where it is there.
    await ok(
      all.shell(`npm install node@${version} --prefer-offline --foreground-scripts`, {
        cwd: folder,
        env: { npm_config_offline: undefined },
      }).ended,
    );
    node = path.join(folder, 'node_modules/node/bin/node');
    expect((await ok(all.shell(`'${node}' --version`, { cwd: folder }).ended)).out).toBe(`v${version}\n`);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('the store in the process does its main job, without a word on stderr', async () => {
    const at = strangersFolder(`under-${version}`, []);
    writeFileSync(
      path.join(at, 'main.mjs'),
      `
      import { openStore } from 'skua/embedded';
      const done = [];
      for (const place of [{ memory: true }, { directory: 'data', chunkBytes: 1_048_576 }, { bucket: 'objects' }]) {
        const store = await openStore(place);
        await store.append('user-1', [{ type: 'Joined', data: { name: 'Ann' } }]);
        await store.append('user-2', [{ type: 'Joined', data: { name: 'Bo' } }]);
        await store.delete('user-1', { hard: true });
        await store.scavenge();
        const { isErased, isKnown } = await store.proveErased({ stream: 'user-1' });
        await store.backup({ to: 'backups-' + Object.keys(place)[0] });
        const read = [];
        for await (const { data } of store.readAll()) read.push(data.name);
        await store.close();
        done.push([isErased || 'bucket' in place, isKnown, read.at(-1)]);
      }
      console.log(JSON.stringify(done));`,
    );
    const { out, err } = await ok(all.shell(`'${node}' main.mjs`, { cwd: at }).ended);
    expect([JSON.parse(out), err]).toEqual([
      [
        [true, true, 'Bo'],
        [true, true, 'Bo'],
        [true, true, 'Bo'],
      ],
      '',
    ]);
  });

  test.for(
    pages()
      .filter((page) => !isTestedElsewhere(page))
      .flatMap(programsOf)
      .filter(({ modules }) => modules.includes('skua/embedded') && !modules.includes('vitest'))
      .map((program, i) => [i + 1, program.page, program] as const),
  )('program %i that embeds the store runs: %s', async ([, , program]) => {
    linkBeside(all);
    // Without its types, as a module, it runs where Node.js strips none.
    await runProgram({ ...program, code: stripTypeScriptTypes(program.code), language: 'js' }, all, node);
  });

  test('a node starts, does the demo with its scripts and its scavenge, and stops', async () => {
    const at = path.join(folder, 'walk');
    mkdirSync(at);
    const program = `exec '${node}' '${path.join(all.installed, 'node_modules/skua/local/skua.mjs')}'`;
    const running = all.shell(`${program} start --disable-tls`, {
      cwd: at,
      isServer: true,
      env: { SERVER_NODE_PORT: '0', SERVER_CHUNK_SIZE: '2097152' },
    });
    const [, url] = await running.seen(/is listening on (\S+)\n/);
    const { out } = await ok(
      all.shell(`${program} demo`, { cwd: at, env: { SKUA_NODE: url, SKUA_USER: 'admin', SKUA_PASSWORD: 'changeit' } })
        .ended,
    );
    expect(out).toMatch(/routed|stream/);
    const { code, err } = await running.end();
    expect(code).toBe(0);
    // What Node.js itself has to say begins so.
    expect(err).not.toMatch(/\(node:\d+\)/);
  });

  test('a node takes a PKCS#12 file, with tracing switched on', async () => {
    const at = path.join(folder, 'pkcs12');
    mkdirSync(path.join(at, 'roots'), { recursive: true });
    writeFileSync(path.join(at, 'node.p12'), WITH_ROOT);
    writeFileSync(path.join(at, 'roots/ca.crt'), ROOT_PEM);
    const running = all.shell(
      `exec '${node}' '${path.join(all.installed, 'node_modules/skua/local/skua.mjs')}' start --mem-db --certificate-file node.p12 --trusted-root-certificates-path roots`,
      {
        cwd: at,
        isServer: true,
        env: {
          SERVER_NODE_PORT: '0',
          SERVER_CERTIFICATE_PASSWORD: PASSWORD,
          OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
        },
      },
    );
    const [, url] = await running.seen(/is listening on (\S+)\n/);
    expect(url).toMatch(/^https:/);
    expect((await running.end()).code).toBe(0);
  });
});
