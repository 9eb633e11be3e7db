import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ANY } from '../../core/streams/api.ts';
import { encodeText } from '../../core/base/text.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { checkConfig } from '../../local/config/check-config.ts';
import { load, problemsOf } from './config/support.ts';
import { openProven, fill } from '../proof/proof-kit.ts';
import { Random } from '../support/random.ts';
import { run } from './run.ts';

/** `skua proof ...` on real directories, and the options of a node that go with it. */

let folder: string;
const at = (...names: string[]) => path.join(folder, ...names);

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-proof-test-'));
  const open = await openProven(new FilesystemStorage({ root: at('data') }), { beginsProofs: false });
  await fill(open, new Random(81), 600);
  await open.store.append('orders/7', ANY, [
    {
      id: '20000000-0000-4000-8000-000000000001',
      type: 'placed',
      isJson: true,
      data: encodeText('{"sum":12}'),
      metadata: new Uint8Array(0),
    },
  ]);
  await open.close();
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('skua proof', () => {
  it('exports an anchor, scavenges, and finds nothing changed; then a bit flips', async () => {
    expect(await run('proof', 'export', '--db', at('data'), '--out', at('anchor.json'))).toMatchObject({
      code: 0,
      out: '',
    });
    expect(await run('proof', 'export', '--db', at('data'), '--out', at('anchor.json'))).toMatchObject({
      code: 4,
      err: expect.stringContaining('file_exists'),
    });
    expect(await run('proof', 'verify', '--db', at('data'), '--anchor', at('anchor.json'))).toMatchObject({
      code: 0,
      out: expect.stringContaining('nothing was changed'),
    });
    expect((await run('scavenge', 'offline', at('data'))).code).toBe(0);
    const after = await run('proof', 'verify', '--db', at('data'), '--anchor', at('anchor.json'), '--json');
    expect(after.code).toBe(0);
    const summary = JSON.parse(after.out.trim().split('\n').at(-1)!) as {
      removed: number;
      uncovered: number;
      findings: number;
    };
    expect(summary.removed).toBeGreaterThan(100);
    expect(summary).toMatchObject({ findings: 0, uncovered: summary.removed });
    expect((await run('proof', 'verify', '--db', at('data'), '--anchor', at('anchor.json'), '--strict')).code).toBe(1);
    const { out } = await run('proof', 'export', '--db', at('data'));
    writeFileSync(at('anchors.jsonl'), readFileSync(at('anchor.json')));
    appendFileSync(at('anchors.jsonl'), out);
    expect(await run('proof', 'verify', '--db', at('data'), '--anchor', at('anchors.jsonl'), '--strict')).toMatchObject(
      { code: 0, out: expect.stringContaining('2 of 2 anchors') },
    );

    expect((await run('backup', 'create', '--db', at('data'), '--repository', at('backups'))).code).toBe(0);
    expect(
      await run('proof', 'verify', '--repository', at('backups'), '--anchor', at('anchors.jsonl'), '--strict'),
    ).toMatchObject({ code: 0, out: expect.stringContaining('nothing was changed') });
    expect(
      await run(
        'proof',
        'verify',
        '--repository',
        at('backups'),
        '--anchor',
        at('anchors.jsonl'),
        '--until',
        '2020-01-01T00:00:00Z',
      ),
    ).toMatchObject({ code: 2 });
    expect(await run('restore', '--from', at('backups'), '--db', at('restored'))).toMatchObject({ code: 0 });
    expect(
      (await run('proof', 'verify', '--db', at('restored'), '--anchor', at('anchors.jsonl'), '--strict')).code,
    ).toBe(0);

    const proof = await run('proof', 'export', '--db', at('data'), '--event', 'orders/7/0');
    writeFileSync(at('event.json'), proof.out);
    expect(await run('proof', 'verify', '--event', at('event.json'))).toMatchObject({
      code: 0,
      out: expect.stringMatching(/proved.*orders\/7.*\n\{"sum":12\}\n.*came with the proof/),
    });
    expect(
      await run('proof', 'verify', '--event', at('event.json'), '--anchor', at('anchors.jsonl'), '--json'),
    ).toMatchObject({ code: 0, out: expect.stringContaining('"isProven":true,"anchorIsFromProof":false') });
    const document = JSON.parse(proof.out) as { record: string };
    const record = Buffer.from(document.record, 'base64');
    record[record.length - 4]! ^= 1;
    writeFileSync(at('other.json'), JSON.stringify({ ...document, record: record.toString('base64') }));
    expect(await run('proof', 'verify', '--event', at('other.json'), '--anchor', at('anchors.jsonl'))).toMatchObject({
      code: 1,
      out: expect.stringContaining('not proved'),
    });

    const chunk = at('restored', 'chunk-000000.000001');
    expect(existsSync(chunk)).toBe(true);
    rmSync(at('damaged'), { recursive: true, force: true });
    const bytes = readFileSync(chunk);
    bytes[2_000]! ^= 1;
    rmSync(chunk);
    writeFileSync(chunk, bytes);
    expect(await run('proof', 'verify', '--db', at('restored'), '--anchor', at('anchors.jsonl'))).toMatchObject({
      code: 1,
      out: expect.stringMatching(/wrong +\S/),
    });
  });

  it('proves nothing by an anchor that does not hold', async () => {
    const anchor = JSON.parse(readFileSync(at('anchor.json'), 'utf8')) as object;
    writeFileSync(at('of-another.json'), JSON.stringify({ ...anchor, chain: '0f'.repeat(16) }));
    const { code, out } = await run('proof', 'verify', '--db', at('data'), '--anchor', at('of-another.json'));
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringMatching(
        /is of another chain, (?:0f){16}.*\n.*1 thing wrong\. No anchor holds, so that nothing is proven\./,
      ),
    });
    expect(out).not.toContain('are as they were');
  });

  it('names the event of the chunk being written in which a byte was changed', async () => {
    const open = await openProven(new FilesystemStorage({ root: at('written') }), { chunkSizeBytes: 1_048_576 });
    await fill(open, new Random(82), 200);
    await open.store.append('orders/8', ANY, [
      {
        id: '20000000-0000-4000-8000-000000000002',
        type: 'placed',
        isJson: true,
        data: encodeText('{"sum":100}'),
        metadata: new Uint8Array(0),
      },
    ]);
    await fill(open, new Random(83), 200);
    await open.close();
    expect((await run('proof', 'export', '--db', at('written'), '--out', at('written.json'))).code).toBe(0);
    const chunk = at('written', 'chunk-000000.000000');
    const bytes = readFileSync(chunk);
    const offset = bytes.indexOf('{"sum":100}') + 7;
    bytes[offset] = '9'.charCodeAt(0);
    rmSync(chunk);
    writeFileSync(chunk, bytes);
    const words = ['proof', 'verify', '--db', at('written'), '--anchor', at('written.json')];
    const { code, out } = await run(...words);
    expect({ code, out }).toEqual({
      code: 1,
      out: expect.stringContaining(`Most likely it is event 0 of stream 'orders/8' at position `),
    });
    const lines = (await run(...words, '--json')).out
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as object);
    expect(lines).toContainEqual(
      expect.objectContaining({
        kind: 'finding',
        code: 'changed',
        file: 'chunk-000000.000000',
        likely: 1,
        records: expect.arrayContaining([
          { position: expect.any(Number), stream: 'orders/8', number: 0, isReadable: true },
        ]),
      }),
    );
  });

  it('says what is wrong with what it is given', async () => {
    expect(await run('proof', 'verify', '--db', at('data'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('--anchor'),
    });
    expect(await run('proof', 'verify', '--db', at('data'), '--event', 'x', '--anchor', 'x')).toMatchObject({
      code: 2,
    });
    expect(await run('proof', 'verify', '--db', at('data'), '--anchor', at('nothing'))).toMatchObject({
      code: 3,
      err: expect.stringContaining('file_not_readable'),
    });
    writeFileSync(at('junk'), '{"a":1}');
    expect(await run('proof', 'verify', '--db', at('data'), '--anchor', at('junk'))).toMatchObject({
      code: 1,
      err: expect.stringContaining('proof_invalid'),
    });
    expect(await run('proof', 'verify', '--db', at('nowhere'), '--anchor', at('anchor.json'))).toMatchObject({
      code: 3,
    });
    expect(await run('proof', 'verify', '--event', at('junk'))).toMatchObject({
      code: 1,
      err: expect.stringContaining('proof_invalid'),
    });
    expect(await run('proof', 'export', '--db', at('data'), '--event', 'orders')).toMatchObject({ code: 2 });
    expect(await run('proof', 'export', '--db', at('data'), '--event', 'orders/7/9')).toMatchObject({
      code: 1,
      err: expect.stringContaining('event_not_found'),
    });
    expect(await run('proof', 'export', '--db', at('data'), '--anchor', at('anchor.json'))).toMatchObject({ code: 2 });
  });
});

describe('the options of a node', () => {
  it.each([
    [['--proof-anchor=/x/anchors'], ['--proof-chain']],
    [['--proof-chain', '--mem-db'], ['--mem-db']],
    [['--proof-chain', '--storage=s3://bucket/prefix'], ['--db']],
    [['--proof-chain', '--db=/data', '--proof-anchor=/data/anchors'], ['is in the data directory']],
    [['--proof-chain', '--proof-anchor=https://'], ['--proof-anchor']],
    [['--proof-chain', '--proof-anchor=ftp://x/y'], ['--proof-anchor']],
    [['--proof-chain', '--proof-anchor=/x/anchors', '--proof-lock-days=3'], ['--proof-lock-days']],
    [['--proof-chain', '--proof-anchor=s3://bucket/anchors', '--proof-lock-days=3'], []],
    [['--proof-chain', '--proof-anchor=https://user:x@host.test/anchors'], []],
    [['--proof-chain', '--db=/data', '--proof-anchor=/elsewhere/anchors'], []],
    [['--proof-chain', '--db=/data', '--storage=s3://bucket/prefix', '--cluster-size=3'], []],
  ])('%j', (words, problems) => {
    const found = problemsOf(() => checkConfig(load(['--insecure', ...words])));
    expect(found).toEqual(problems.map((text) => expect.stringContaining(text)));
  });
});
