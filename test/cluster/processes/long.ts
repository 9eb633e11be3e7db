// Members of a cluster as real processes, under all that can happen to them: `node test/cluster/processes/long.ts
// --minutes 10 --storage s3`.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { s3ForTests } from '../../support/s3/s3-for-tests.ts';
import { BUCKET_ADDRESS, Network, Relay, spawnInside, whyNotIsolated } from './isolation.ts';
import { runCluster } from './run.ts';

const USAGE = `Three members of a cluster as real processes, clients of all kinds, and all that can happen to them.

  node test/cluster/processes/long.ts [options]

  --minutes N        how long it lasts (default 10)
  --storage KIND     directory (default), or s3: the server that S3_ENDPOINT names, else one that tests start
  --members N        default 3
  --seed N           chooses what happens (default 1)
  --without-copies   nodes on object storage, which have no directories of their own
  --without-network  no namespaces: nobody is cut off, and no disk is full
  --json FILE        writes the report into a file
  --keep             leaves the data, the bucket and the logs of the members where they are, and says where
`;
const REAPER = fileURLToPath(new URL('../../support/reaper.mjs', import.meta.url));
const BUCKET_PORT = 9000;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    storage: { type: 'string', default: 'directory' },
    members: { type: 'string', default: '3' },
    seed: { type: 'string', default: '1' },
    'without-copies': { type: 'boolean', default: false },
    'without-network': { type: 'boolean', default: false },
    json: { type: 'string' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
    inside: { type: 'string' },
  },
});

/** What processes of a run are known by. */
const RUN = 'SKUA_CLUSTER_RUN';

/** What the process inside is told by the one outside. */
interface Outside {
  readonly folder: string;
  readonly json: string;
  readonly isIsolated: boolean;
  readonly s3: {
    readonly endpoint: string;
    readonly bucket: string;
    readonly region: string;
    readonly env: Readonly<Record<string, string>>;
  } | null;
}

/** The network and the bucket are there: what is left to do. */
async function run({ folder, json, isIsolated, s3 }: Outside): Promise<void> {
  const members = Number(values.members);
  const network = isIsolated ? await Network.make(members) : null;
  const relay =
    isIsolated && s3 !== null
      ? await Relay.open({ host: BUCKET_ADDRESS, port: BUCKET_PORT }, { path: join(folder, 's3.socket') })
      : null;
  const endpoint = s3 === null || relay === null ? (s3?.endpoint ?? null) : `http://${BUCKET_ADDRESS}:${BUCKET_PORT}`;
  const env = s3 === null ? {} : { ...s3.env, AWS_ENDPOINT_URL_S3: endpoint! };
  Object.assign(process.env, env);
  const begin = performance.now();
  const report = await runCluster({
    storage: s3 === null ? join(folder, 'objects') : `s3://${s3.bucket}/cluster`,
    place:
      s3 === null
        ? { kind: 'directory', path: join(folder, 'objects') }
        : { kind: 's3', bucket: s3.bucket, prefix: 'cluster', endpoint, region: s3.region },
    env,
    folder,
    seconds: Number(values.minutes) * 60,
    seed: Number(values.seed),
    members,
    network,
    hasCopies: !values['without-copies'],
    say: (line) => process.stderr.write(`${((performance.now() - begin) / 1_000).toFixed(1).padStart(7)} s  ${line}\n`),
  });
  const text = JSON.stringify(
    {
      storage: values.storage,
      minutes: Number(values.minutes),
      seed: Number(values.seed),
      isolated: isIsolated,
      ...report,
    },
    null,
    2,
  );
  writeFileSync(json, `${text}\n`);
  process.stdout.write(`${text}\n`);
  network?.close();
  await relay?.close();
  process.exit(report.problems.length === 0 ? 0 : 1);
}

async function outside(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'skua-cluster-'));
  const why = values['without-network'] ? 'it was asked for' : whyNotIsolated();
  if (why !== null) process.stderr.write(`Nobody is cut off, and no disk is full: ${why}.\n`);
  const s3 = values.storage === 's3' ? await s3ForTests() : null;
  // Whatever befalls this process, what it started ends with it.
  const reaper = spawn(process.execPath, [REAPER, RUN, `${folder}/run`], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  let relay: Relay | null = null;
  try {
    if (s3 !== null && why === null)
      relay = await Relay.open(
        { path: join(folder, 's3.socket') },
        { host: new URL(s3.endpoint).hostname, port: Number(new URL(s3.endpoint).port) },
      );
    const told: Outside = {
      folder,
      json: resolve(values.json ?? join(folder, 'report.json')),
      isIsolated: why === null,
      s3:
        s3 === null
          ? null
          : { endpoint: s3.endpoint, bucket: s3.bucket, region: s3.region, env: { ...credentials(), ...s3.env } },
    };
    const child = spawnInside(
      [import.meta.filename, ...process.argv.slice(2), '--inside', JSON.stringify(told)],
      told.isIsolated,
      { [RUN]: `${folder}/run` },
    );
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill('SIGKILL'));
    return await new Promise<number>((ended) => {
      child.once('exit', (code) => ended(code ?? 1));
    });
  } finally {
    reaper.stdin.end();
    await relay?.close();
    if (!values.keep) await s3?.close();
    if (values.keep) process.stderr.write(`The data and the logs are in ${folder}.\n`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

function credentials(): Record<string, string> {
  return Object.fromEntries(
    ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_REGION'].flatMap((name) =>
      process.env[name] === undefined ? [] : [[name, process.env[name]]],
    ),
  );
}

if (values.help) process.stdout.write(USAGE);
else if (values.inside === undefined) process.exitCode = await outside();
else await run(JSON.parse(values.inside) as Outside);
