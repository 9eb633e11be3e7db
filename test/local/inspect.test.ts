import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { isRepositoryKey } from '../../core/backup/format/repository-keys.ts';
import { COMMITS, FAILURES, FILES, MANIFESTS } from '../../core/shared-log/format/object-keys.ts';
import { CONTROL } from '../../core/shared-log/control/control.ts';
import { isOfKind } from '../../core/ports/object-kinds.ts';
import { isExpectedName, OWN_NAMES } from '../../core/ports/own-names.ts';
import { withoutSecrets } from '../../core/security/format.ts';
import { openObjects } from '../../infra/objects/open-objects.ts';
import { formatByName } from '../../local/inspect/formats.ts';
import { openTestRepository } from '../support/backup/test-repository.ts';
import { installFolder, loadOracle, unpackSet } from '../support/fixtures.ts';
import { Random } from '../support/random.ts';
import { bySize } from '../support/run-size.ts';
import { InProcessS3 } from '../support/s3/in-process-s3.ts';
import { Bucket } from '../shared-log/setup.ts';
import { compact } from '../shared-log/compact.ts';
import { ran, startedNode } from './spawn.ts';

/** `skua inspect` on all that there is to be looked into. */

let folder: string;
const at = (...names: string[]) => path.join(folder, ...names);
const GUID = '0f8fad5b-d9cb-469f-a165-70867728950e';

interface Said {
  readonly kind: string;
  readonly title?: string;
  readonly group?: string;
  readonly format?: string;
  readonly position?: number;
  readonly offset?: number;
  readonly code?: string;
  readonly fields?: Record<string, unknown>;
  readonly records?: number;
}

async function said(
  ...words: string[]
): Promise<{ readonly code: number | null; readonly err: string; readonly lines: readonly Said[] }> {
  const { code, out, err } = await ran(['inspect', ...words, '--json']);
  return {
    code,
    err,
    lines: out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Said),
  };
}

function filesBelow(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(path.join(root, name)).isFile())
    .sort();
}

/** Names, lengths and times of all below a folder. */
function stateOf(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => `${name} ${statSync(path.join(root, name)).size} ${statSync(path.join(root, name)).mtimeMs}`);
}

const FIXTURES = ['fresh', 'crashed', 'orders-2-scavenged', 'transactions-2-deleted'];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-inspect-test-'));
  for (const name of FIXTURES) installFolder(at(name), unpackSet(name));
  const node = await startedNode(['--disable-tls', '--db', at('data'), '--chunk-size', '131072', '--proof-chain']);
  const post = (stream: string, data: string) =>
    fetch(`${node.url}/streams/${stream}`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${btoa('admin:changeit')}`,
        'content-type': 'application/json',
        'es-eventtype': 'made',
        'es-eventid': crypto.randomUUID(),
      },
      body: data,
    });
  for (let i = 0; i < 8; i++)
    expect((await post('parcels', JSON.stringify({ text: 'x'.repeat(30_000), told: '\u001B[31m\u202E' }))).status).toBe(
      201,
    );
  expect(
    (await post('$user-kim', JSON.stringify({ loginName: 'kim', hash: 'never-to-be-seen', salt: 'nor-this-one' })))
      .status,
  ).toBe(201);
  await node.stop();
  for (const words of [
    ['proof', 'export', '--db', at('data'), '--out', at('anchor.json')],
    ['proof', 'export', '--db', at('data'), '--event', 'parcels/0', '--out', at('event.json')],
    ['backup', 'key', at('key')],
    ['backup', 'create', '--db', at('data'), '--repository', at('repo')],
    ['backup', 'create', '--db', at('data'), '--repository', at('sealed'), '--key-file', at('key')],
  ]) {
    expect(await ran(words)).toMatchObject({ code: 0 });
  }
  await makeLog();
}, 60_000);

/** A log of objects in a folder. */
async function makeLog(): Promise<void> {
  const bucket = new Bucket();
  const instance = await bucket.open();
  const append = async (count: number) => {
    for (let i = 0; i < count; i++)
      await instance.store.append('parcels', -2, [
        {
          id: crypto.randomUUID(),
          type: 'made',
          isJson: false,
          data: new Uint8Array(9_000).fill(120),
          metadata: new Uint8Array(0),
        },
      ]);
  };
  await append(12);
  await compact(bucket.world());
  await append(2);
  await instance.close();
  for (const { key } of (await bucket.objects.list('')).objects) {
    mkdirSync(path.dirname(at('log', key)), { recursive: true });
    writeFileSync(at('log', key), (await bucket.objects.get(key))!);
  }
}

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('what is sound', () => {
  test.each([...FIXTURES, 'data', 'repo', 'log'])(
    'every file of %s is of a known kind, nothing is wrong with it, and nothing is changed',
    async (name) => {
      const before = stateOf(at(name));
      for (const file of filesBelow(at(name))) {
        const { code, err, lines } = await said(at(name, file), '--limit', '3');
        expect({ file, code, err, damage: lines.filter(({ kind }) => kind === 'damage') }).toEqual({
          file,
          code: 0,
          err: '',
          damage: [],
        });
        expect(lines[0]).toMatchObject({ kind: 'file' });
        expect(lines.at(-1)).toMatchObject({ kind: 'summary' });
        expect(await ran(['inspect', at(name, file)])).toMatchObject({ code: 0, err: '' });
      }
      expect(await said(at(name))).toMatchObject({ code: 0 });
      expect(stateOf(at(name))).toEqual(before);
    },
    60_000,
  );

  test.each(['crashed', 'orders-2-scavenged', 'transactions-2-deleted'])(
    'the records of %s are those that the reference database told of',
    async (name) => {
      const records = new Map<number, Said>();
      for (const file of filesBelow(at(name)).filter((each) => each.startsWith('chunk-'))) {
        for (const line of (await said(at(name, file), '--limit', '0')).lines)
          if (line.kind === 'record') records.set(line.position!, line);
      }
      const { all } = loadOracle(name);
      expect(all.length).toBeGreaterThan(0);
      for (const [, prepare, stream, , type, eventId] of all)
        expect(records.get(Number(prepare))?.fields).toMatchObject({ stream, type, eventId });
    },
    60_000,
  );

  test('one record is shown whole, by position and by offset, in decimal and hexadecimal', async () => {
    const file = at('orders-2-scavenged', 'chunk-000004.000001');
    const { lines } = await said(file, '--limit', '4');
    const [, , , , , third] = lines;
    const { position, offset } = third!;
    for (const place of [String(position), `0x${position!.toString(16)}`, `@${offset}`, `@0x${offset!.toString(16)}`]) {
      const {
        code,
        lines: [, only, ...rest],
      } = await said(file, '--at', place);
      expect({ code, only, rest }).toEqual({ code: 0, only: third, rest: [] });
    }
    expect(await ran(['inspect', file, '--at', String(position! + 1)])).toMatchObject({
      code: 1,
      err: expect.stringContaining('error record_not_found: No record begins at position'),
    });
  });

  test('how many records there are more is told', async () => {
    const { out } = await ran(['inspect', at('orders-2-scavenged', 'chunk-000004.000001'), '--limit', '2']);
    expect(out).toContain('… and 375 more records; --limit 0 shows all of them, --at one.');
    expect(out).toContain('377 records, nothing wrong found.');
  });

  test('large content is cut unless all of it is wanted', async () => {
    const file = at('data', 'chunk-000000.000000');
    const long = async (...words: string[]) =>
      (await said(file, '--limit', '0', ...words)).lines.find(({ fields }) => fields?.['stream'] === 'parcels')!
        .fields!;
    expect(await long()).toMatchObject({ data: expect.stringMatching(/^.{4096}$/), dataIsCut: true });
    expect(String((await long('--data'))['data']).length).toBeGreaterThan(30_000);
  });
});

describe('secrets and terminals', () => {
  test('hashes of passwords are not shown, and nothing that a terminal would obey', async () => {
    for (const name of ['data', 'repo']) {
      for (const file of filesBelow(at(name))) {
        for (const words of [[], ['--json'], ['--data'], ['--data', '--json']]) {
          const { out } = await ran(['inspect', at(name, file), '--limit', '0', ...words]);
          expect(out).not.toMatch(/never-to-be-seen|nor-this-one|\$scrypt/);
          // eslint-disable-next-line no-control-regex -- control characters are what is looked for
          expect(out).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E]/);
        }
      }
    }
    expect(
      (await said(at('data', 'chunk-000001.000000'), '--limit', '0')).lines
        .concat(
          (await said(at('data', 'chunk-000000.000000'), '--limit', '0')).lines,
          (await said(at('data', 'chunk-000002.000000'), '--limit', '0')).lines,
        )
        .find(({ fields }) => fields?.['stream'] === '$user-kim')?.fields?.['data'],
    ).toBe('{"loginName":"kim","hash":"(not shown)","salt":"(not shown)"}');
  }, 60_000);

  test('of settings of connectors sealed secrets are not shown, of streams of the page nothing', () => {
    const shownOf = (stream: string, text: string) => {
      const bytes = withoutSecrets(stream, new TextEncoder().encode(text));
      return bytes === null ? null : new TextDecoder().decode(bytes);
    };
    expect(shownOf('$connectors/orders', '{"signature:secret":"skua-sealed:1:0a1b:QUJD+/==","scheme":"Stripe"}')).toBe(
      '{"signature:secret":"(not shown)","scheme":"Stripe"}',
    );
    expect(shownOf('$ui-session-keys', '{"key":"x"}')).toBeNull();
    expect(shownOf('$user-kim', 'no JSON')).toBeNull();
    expect(shownOf('parcels', '{"hash":"of a parcel"}')).toBe('{"hash":"of a parcel"}');
  });

  test('the key of sessions is none of what is shown', async () => {
    mkdirSync(at('keys'));
    writeFileSync(at('keys', 'session.key'), 'f'.repeat(64));
    const { code, out } = await ran(['inspect', at('keys', 'session.key')]);
    expect({ code, isShown: out.includes('ffff') }).toEqual({ code: 0, isShown: false });
  });
});

describe('repositories, buckets and what was exported', () => {
  test('blobs are shown with the chunk or the table in them, those of an encrypted repository by its key alone', async () => {
    const kinds = async (name: string, ...words: string[]) => {
      const all = await Promise.all(
        filesBelow(at(name))
          .filter((file) => file.startsWith('blobs/'))
          .map((file) => said(at(name, file), '--limit', '1', ...words)),
      );
      expect(all.map(({ code, err }) => ({ code, err }))).toEqual(all.map(() => ({ code: 0, err: '' })));
      return new Set(all.flatMap(({ lines }) => lines.map(({ group, title }) => group ?? title)));
    };
    const plain = await kinds('repo');
    for (const group of ['blob', 'records', 'footer', 'header', 'leaves']) expect(plain).toContain(group);
    expect(await kinds('sealed')).toEqual(new Set([undefined, 'content in a backup repository', 'blob']));
    expect(await kinds('sealed', '--key-file', at('key'))).toEqual(plain);
    writeFileSync(at('another'), `${'08'.repeat(32)}\n`);
    expect(await ran(['inspect', at('sealed', 'skua-repository')])).toMatchObject({ code: 0 });
    const manifest = filesBelow(at('sealed')).find((file) => file.startsWith('manifests/'))!;
    expect(await ran(['inspect', at('sealed', manifest), '--key-file', at('another')])).toMatchObject({
      code: 4,
      err: expect.stringContaining('error repository_key: '),
    });
    expect(
      (await said(at('sealed', manifest), '--key-file', at('key'))).lines.some(({ group }) => group === 'chunks'),
    ).toBe(true);
  });

  test.each([
    ['plain', null, 'off'],
    ['compressed', null, 'on'],
    ['sealed', new Uint8Array(32).fill(7), 'off'],
  ] as const)('log that was shipped, %s, is shown record for record', async (name, key, compression) => {
    const chunk = at('transactions-2-deleted', 'chunk-000000.000000');
    const records = (await said(chunk, '--limit', '3')).lines.filter(({ kind }) => kind === 'record');
    const to = records[2]!.position! + Number(records[2]!.fields!['lengthBytes']);
    const place = at(`shipped-${name}`);
    const repository = await openTestRepository(await openObjects({ kind: 'directory', path: place }), {
      key,
      compression,
      create: true,
    });
    expect(
      await repository.ship(
        { manifestId: GUID, from: 0, to, shippedMs: 1_795_900_000_000 },
        readFileSync(chunk).subarray(128, 128 + to),
      ),
    ).toBe('created');
    await repository.close();
    writeFileSync(at('seven'), `${'07'.repeat(32)}\n`);
    const file = path.join(place, 'shipped', GUID, '0'.padStart(20, '0'));
    if (key !== null)
      expect((await said(file)).lines).toMatchObject([
        { kind: 'file' },
        { kind: 'note', message: expect.stringContaining('--key-file') },
        { kind: 'summary', records: 0 },
      ]);
    const { code, lines } = await said(file, ...(key === null ? [] : ['--key-file', at('seven')]));
    expect({
      code,
      positions: lines
        .filter(({ kind }) => kind === 'record')
        .map(({ position, fields }) => [position, fields!['eventId']]),
    }).toEqual({ code: 0, positions: records.map(({ position, fields }) => [position, fields!['eventId']]) });
  });

  test('objects by address are what they are as files', async () => {
    const s3 = await InProcessS3.start();
    for (const [name, value] of Object.entries({
      AWS_ACCESS_KEY_ID: 'a',
      AWS_SECRET_ACCESS_KEY: 'b',
      AWS_REGION: 'us-east-1',
    }))
      vi.stubEnv(name, value);
    try {
      s3.state.buckets.set('bucket', new Map());
      for (const name of ['log', 'repo']) {
        const objects = await openObjects({
          kind: 's3',
          bucket: 'bucket',
          prefix: `some/${name}`,
          endpoint: s3.endpoint,
          region: null,
        });
        for (const key of filesBelow(at(name))) await objects.put(key, readFileSync(at(name, key)));
        await objects.close();
        for (const key of filesBelow(at(name))) {
          const [here, there] = await Promise.all([
            said(at(name, key), '--limit', '2'),
            said(`s3://bucket/some/${name}/${key}`, '--limit', '2', '--s3-endpoint', s3.endpoint),
          ]);
          expect({ key, ...there, lines: there.lines.slice(1) }).toEqual({ key, ...here, lines: here.lines.slice(1) });
        }
      }
      expect((await said('s3://bucket/some', '--limit', '0', '--s3-endpoint', s3.endpoint)).lines.length).toBe(
        2 + filesBelow(at('log')).length + filesBelow(at('repo')).length,
      );
      expect(await ran(['inspect', 's3://bucket/nothing', '--s3-endpoint', s3.endpoint])).toMatchObject({
        code: 3,
        err: expect.stringContaining('error file_not_found: There is no object'),
      });
      expect(
        await ran(['inspect', `s3://bucket/some/log/log/${'999'.padStart(20, '0')}`, '--s3-endpoint', s3.endpoint]),
      ).toMatchObject({ code: 3 });
    } finally {
      vi.unstubAllEnvs();
      await s3.close();
    }
  }, 60_000);

  test('a log in a bucket: commits with their records, manifests with their files, and files by the names that these have', async () => {
    const all = await Promise.all(filesBelow(at('log')).map((file) => said(at('log', file), '--limit', '0')));
    const titles = new Set(all.flatMap(({ lines }) => lines.map(({ group, title }) => group ?? title)));
    for (const title of [
      'commit',
      'records',
      'manifest',
      'chunks',
      'ongoing.segments',
      'files',
      'object',
      'footer',
      'entries',
    ])
      expect([...titles]).toContain(title);
  });

  test('anchors, proofs of events, audit and log are known by how they begin, and by an address of a file', async () => {
    writeFileSync(
      at('audit.json'),
      '{"time":"2026-11-22T00:00:00Z","action":"login","outcome":"refused","user":"kim","address":null,"target":null}\n',
    );
    writeFileSync(
      at('log20261122.json'),
      '{"@t":"2026-11-22T00:00:00.000+00:00","@mt":"listening","@l":"Information","port":2113,"SourceContext":"Skua","ProcessId":7}\n',
    );
    for (const [name, format] of [
      ['anchor.json', 'proof-anchors'],
      ['event.json', 'event-proof'],
      ['audit.json', 'audit-log'],
      ['log20261122.json', 'node-log'],
    ] as const) {
      const { code, lines } = await said(`file://${at(name)}`);
      expect({ code, format: lines[0]?.format, records: lines.at(-1)?.records }).toEqual({
        code: 0,
        format,
        records: 1,
      });
    }
  });
});

describe('what is not sound', () => {
  /** Small files of each kind. */
  const small = () => [
    at('fresh', 'writer.chk'),
    at('crashed', 'index', 'indexmap'),
    ...pickOf('data', ['node-id', 'proofs/chain', 'proofs/leaves-000000', 'skua-none'], 1_500),
    ...pickOf('repo', ['skua-repository', 'manifests/', 'blobs/'], 1_500),
    ...pickOf('log', ['log/', 'manifest/'], 6_000),
    at('anchor.json'),
  ];
  const pickOf = (name: string, beginnings: readonly string[], sizeMax: number) =>
    beginnings.flatMap((beginning) =>
      filesBelow(at(name))
        .filter((file) => file.startsWith(beginning) && statSync(at(name, file)).size < sizeMax)
        .slice(0, 1)
        .map((file) => at(name, file)),
    );

  async function judged(file: string, what: string): Promise<number | null> {
    const { code, out, err } = await ran(['inspect', file, '--limit', '2']);
    expect([0, 1, 3, 4], `${what}: ${err}`).toContain(code);
    expect(err, what).toMatch(/^$|^error (?!internal)[a-z_]+: /);
    expect(out, what).not.toContain('internal');
    return code;
  }

  test('cut short anywhere, or with a bit flipped, a small file ends with an answer and never with a defect', async () => {
    const random = new Random(7);
    for (const file of small()) {
      const bytes = readFileSync(file);
      const work = path.join(
        mkdtempSync(at('cut-')),
        ...(path.dirname(file) === folder
          ? [path.basename(file)]
          : file.split(path.sep).slice(folder.split(path.sep).length + 1)),
      );
      mkdirSync(path.dirname(work), { recursive: true });
      for (
        let length = 0;
        length < bytes.length;
        length += bytes.length < 150 ? 1 : random.int(1, bySize(120, 20, 1))
      ) {
        writeFileSync(work, bytes.subarray(0, length));
        const code = await judged(work, `${file} cut to ${length}`);
        // The last line end of an anchor is no loss.
        if (!file.endsWith('anchor.json') && !file.endsWith('node-id') && !file.endsWith('chain'))
          expect(code, `${file} cut to ${length}`).not.toBe(0);
      }
      for (let i = 0; i < bySize(6, 40, 400); i++) {
        const flipped = Uint8Array.from(bytes);
        const place = random.int(0, bytes.length - 1);
        flipped[place]! ^= 1 << random.int(0, 7);
        writeFileSync(work, flipped);
        await judged(work, `${file} with a bit flipped in byte ${place}`);
      }
    }
  }, 120_000);

  test('every flipped bit of a completed chunk is found, and the records before it are shown', async () => {
    const random = new Random(11);
    const bytes = readFileSync(at('orders-2-scavenged', 'chunk-000004.000001'));
    mkdirSync(at('flips'));
    const work = at('flips', 'chunk-000004.000001');
    for (let i = 0; i < bySize(20, 60, 300); i++) {
      const place =
        i < 10
          ? random.int(0, 127)
          : i < 14
            ? random.int(bytes.length - 128, bytes.length - 1)
            : random.int(0, bytes.length - 1);
      const flipped = Uint8Array.from(bytes);
      flipped[place]! ^= 1 << random.int(0, 7);
      writeFileSync(work, flipped);
      expect(await judged(work, `bit flipped in byte ${place}`), `byte ${place}`).toBe(1);
    }
    copyFileSync(at('orders-2-scavenged', 'chunk-000004.000001'), work);
    const flipped = Uint8Array.from(bytes);
    flipped[900_233 + 1]! ^= 0x40;
    writeFileSync(work, flipped);
    const { code, lines } = await said(work, '--limit', '0');
    expect({ code, records: lines.filter(({ kind }) => kind === 'record').length }).toEqual({ code: 1, records: 376 });
    expect(lines.filter(({ kind }) => kind === 'damage')).toMatchObject([{ offset: 900_233, code: 'log_corrupt' }]);
    expect((await ran(['inspect', work])).err).toContain(
      `error log_corrupt: ${work} is damaged at offset 900233: chunk-000004.000001 holds a record`,
    );
    // A record behind the damage can be had by its place.
    expect(await said(work, '--at', '5094576')).toMatchObject({ code: 0 });
  }, 120_000);

  test('behind a damaged record of a chunk that no scavenge has touched, records go on where one names its own position', async () => {
    const name = 'chunk-000000.000000';
    const { lines } = await said(at('transactions-2-deleted', name), '--limit', '0');
    const records = lines.filter(({ kind }) => kind === 'record');
    const damaged = records[5]!;
    const bytes = readFileSync(at('transactions-2-deleted', name));
    bytes[damaged.offset! + 2]! ^= 0x10;
    mkdirSync(at('resumed'));
    writeFileSync(at('resumed', name), bytes);
    copyFileSync(at('transactions-2-deleted', 'writer.chk'), at('resumed', 'writer.chk'));
    const found = await said(at('resumed', name), '--limit', '0');
    expect(found.lines.filter(({ kind }) => kind === 'record')).toEqual(records.toSpliced(5, 1));
    expect(found.lines.filter(({ kind }) => kind === 'damage')).toMatchObject([{ offset: damaged.offset }]);
  });

  test.each([
    ['index table', 'index/56a3edcc-b59c-4569-a5f1-07ed0ef67a33'],
    ['filter', 'index/56a3edcc-b59c-4569-a5f1-07ed0ef67a33.bloomfilter'],
    ['scavenge database', 'index/scavenging/scavenging.db'],
    ['ongoing chunk', 'chunk-000005.000000'],
  ])(
    'flipped bits and cuts of a %s end with an answer',
    async (_, name) => {
      const random = new Random(13);
      const bytes = readFileSync(at('orders-2-scavenged', name));
      const work = path.join(mkdtempSync(at('flip-')), name);
      mkdirSync(path.dirname(work), { recursive: true });
      for (let i = 0; i < bySize(12, 40, 200); i++) {
        const flipped = Uint8Array.from(bytes);
        flipped[random.chance(0.4) ? random.int(0, 300) : random.int(0, bytes.length - 1)]! ^= 1 << random.int(0, 7);
        writeFileSync(work, random.chance(0.3) ? flipped.subarray(0, random.int(0, bytes.length)) : flipped);
        await judged(work, `${name}, round ${i}`);
      }
    },
    120_000,
  );

  test('what is of no kind that is known is refused, and the answer says what is known', async () => {
    writeFileSync(at('notes.txt'), 'Call the plumber.\n');
    expect(await ran(['inspect', at('notes.txt')])).toMatchObject({
      code: 4,
      out: '',
      err: expect.stringMatching(/^error unknown_format: .*notes\.txt is not a known kind of file, .*chunk of the log/),
    });
    expect(await ran(['inspect', at('absent')])).toMatchObject({
      code: 3,
      err: expect.stringContaining('error file_not_found: '),
    });
    expect(await ran(['inspect', 'ftp://x/y'])).toMatchObject({ code: 2 });
    expect(await ran(['inspect', at('data'), '--at', '1'])).toMatchObject({ code: 2 });
    expect(await ran(['inspect', at('notes.txt'), '--at', 'there'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--at must be a position such as 8192'),
    });
    expect(await ran(['inspect', '/dev/zero'])).toMatchObject({
      code: 1,
      err: expect.stringContaining('is not a file'),
    });
  });
});

test('it looks at what it may not write to', async () => {
  chmodSync(at('fresh'), 0o555);
  chmodSync(at('fresh', 'chunk-000000.000000'), 0o444);
  try {
    expect(await said(at('fresh', 'chunk-000000.000000'))).toMatchObject({ code: 0 });
  } finally {
    chmodSync(at('fresh'), 0o755);
  }
});

/** A name for each expression of the table. */
const INDEX_SAMPLES = [
  'indexmap',
  `indexmap.${GUID}.indexmap.tmp`,
  GUID,
  `${GUID}.bloomfilter.copy.tmp`,
  'proven-tables',
  '.forceverify',
];
const SAMPLES: Readonly<Record<string, readonly string[]>> = {
  '': [
    'chunk-000001.000002',
    'chunk-000001.000002.rest.tmp',
    'chunk-000001.000002.gone.tmp',
    `chunk-000001.000002.${GUID}.tmp`,
    'chunk-000001.000002.old',
    'writer.chk',
    'truncate.chk.copy.tmp',
    'log-id',
    'node-id.tmp',
    'proven-chunks',
    'block-sums',
    'restoring',
    'copy-unfinished',
    'scavenge-due',
    `${GUID}.scavenge.tmp`,
    `${GUID}.merge.scavenge.tmp.${GUID}.tmp`,
    'skua.lock',
    'skua.lock.owner',
    'skua.lock-journal',
    'session.key',
    `session.key.${GUID}.tmp`,
    'tag.chk',
    'kurrent.ddb',
  ],
  index: [...INDEX_SAMPLES, 'skua.lock'],
  'attributes/names': INDEX_SAMPLES,
  'attributes/correlations': INDEX_SAMPLES,
  'attributes/tags': INDEX_SAMPLES,
  'index/stream-existence': ['streamExistenceFilter.dat', 'streamExistenceFilter.chk'],
  'index/scavenging': ['scavenging.db', 'scavenging.db-wal', 'scavenging.db-shm'],
  filling: ['chunk-000001.000002.tail'],
  proofs: ['chain', 'leaves-000001', 'receipt-0000000001.tmp'],
};
/** Told by what is in them, since their names say nothing, and those of what is no file. */
const NAMELESS = [/\^\\\{guid\\\}\\\.tmp\$/, /\[0-9a-f\]\{32\}/, /eventstore/, /index-backup/];

test('every name of a file in a data directory is known', async () => {
  for (const [under, names] of Object.entries(SAMPLES)) {
    for (const name of names) {
      const file = under === '' ? name : `${under}/${name}`;
      expect(isExpectedName(file), file).toBe(true);
      expect(await formatByName(file), file).not.toBeNull();
    }
  }
  for (const table of OWN_NAMES) {
    for (const [under, patterns] of table) {
      for (const pattern of patterns) {
        const isKnown =
          SAMPLES[under]?.some((name) => pattern.test(name.replaceAll(GUID, '{guid}'))) === true ||
          NAMELESS.some((nameless) => nameless.test(pattern.source));
        expect(isKnown, `${under}/${pattern.source} needs a sample here, and a kind in a format.ts`).toBe(true);
      }
    }
  }
});

test('every name of an object is known', async () => {
  const hex = '0123456789abcdef'.repeat(4);
  for (const [kind, key] of [
    [COMMITS, `log/${'7'.padStart(20, '0')}`],
    [MANIFESTS, 'manifest/999999999999998'],
    [FILES, `files/${GUID}`],
    [FAILURES, `failures/29700000/${hex.slice(32)}/3`],
    [CONTROL, 'control/backup'],
    [CONTROL, `control/start-${GUID}`],
  ] as const) {
    expect(isOfKind(kind, key), key).toBe(true);
    expect(await formatByName(`some/prefix/${key}`), key).toMatchObject({ root: 'some/prefix/', key });
  }
  for (const key of [
    'skua-repository',
    `manifests/001795900000000-${GUID}`,
    `blobs/01/${hex}`,
    `shipped/${GUID}/${'7'.padStart(20, '0')}`,
    `active/${GUID}`,
    `pruning/${GUID}`,
    'proven',
    'unreferenced',
    'suspect',
  ]) {
    expect(isRepositoryKey(key), key).toBe(true);
    expect(await formatByName(`some/prefix/${key}`), key).toMatchObject({ root: 'some/prefix/', key });
  }
  for (const key of [`probe/${GUID}`, 'nodes/127.0.0.1_3a2113']) expect(await formatByName(key), key).not.toBeNull();
});
