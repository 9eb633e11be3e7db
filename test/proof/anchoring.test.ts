import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MemoryObjects } from '../support/memory-objects.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { Anchoring, type AnchorLocation } from '../../core/integrity/anchoring/anchoring.ts';
import { type Anchor, ANCHOR_FORMAT, parseAnchor } from '../../core/integrity/format/chain-layout.ts';
import { decodeText } from '../../core/base/text.ts';
import { openS3 } from '../../infra/s3/s3-objects.ts';
import { filePlace, objectPlace, openAnchorLocation, urlPlace } from '../../infra/anchors/anchor-locations.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { Random } from '../support/random.ts';
import { InProcessS3 } from '../support/s3/in-process-s3.ts';
import { append, fill, openProven, scavenge, verify } from './proof-kit.ts';

const ANCHOR: Anchor = {
  format: ANCHOR_FORMAT,
  chain: 'ab'.repeat(16),
  chunkSizeBytes: 65_536,
  position: 1_234,
  link: 'cd'.repeat(32),
  receipts: 2,
  receiptsHead: 'ef'.repeat(32),
  madeAt: '2026-11-22T00:00:00Z',
};
const never = new AbortController().signal;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-anchor-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('places for anchors', () => {
  it('a file gets a line behind those before it, in a folder that is made', async () => {
    const file = path.join(folder, 'new', 'anchors.jsonl');
    const place = filePlace(file);
    await place.put(ANCHOR, never);
    await place.put({ ...ANCHOR, position: 5_678 }, never);
    const lines = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => parseAnchor(line, file));
    expect(lines).toEqual([ANCHOR, { ...ANCHOR, position: 5_678 }]);
    await expect(filePlace(folder).put(ANCHOR, never)).rejects.toMatchObject({ code: 'EISDIR' });
  });

  it('a URL gets a POST with its credentials, follows no redirect, and tells of refusals without naming them', async () => {
    const seen: { method: string; body: string; authorization: string | undefined }[] = [];
    let status = 204;
    const server: Server = createServer((request, response) => {
      let body = '';
      request.on('data', (piece: Buffer) => {
        body += piece.toString();
      });
      request.on('end', () => {
        seen.push({ method: request.method!, body, authorization: request.headers.authorization });
        response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end();
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    try {
      const { port } = server.address() as AddressInfo;
      const place = urlPlace(`http://ann:se%3Acret@127.0.0.1:${port}/anchors?token=x`);
      expect(place.name).toBe(`http://127.0.0.1:${port}/anchors`);
      await place.put(ANCHOR, never);
      expect(seen).toEqual([
        {
          method: 'POST',
          body: JSON.stringify(ANCHOR),
          authorization: `Basic ${Buffer.from('ann:se:cret').toString('base64')}`,
        },
      ]);
      status = 500;
      await expect(place.put(ANCHOR, never)).rejects.toMatchObject({
        code: 'io_error',
        message: expect.not.stringContaining('cret'),
      });
      status = 302;
      await expect(place.put(ANCHOR, never)).rejects.toThrow();
      await expect(place.put(ANCHOR, AbortSignal.abort())).rejects.toThrow();
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    }
  });

  it('a bucket gets an object of its own for each, never replaced, under lock where days are given', async () => {
    const objects = new MemoryObjects();
    const place = objectPlace(objects, 0, () => 0);
    await place.put(ANCHOR, never);
    await place.put({ ...ANCHOR, madeAt: 'later' }, never);
    const { objects: found } = await objects.list('');
    expect(found.map(({ key }) => key)).toEqual([`${ANCHOR.chain}/00000000000000001234-0000000002`]);
    expect(parseAnchor(decodeText((await objects.get(found[0]!.key))!), 'x')).toEqual(ANCHOR);
    await expect(objectPlace(objects, 30, () => 0).put({ ...ANCHOR, position: 9 }, never)).rejects.toMatchObject({
      code: 'bad_option',
    });
  });

  it('a lock is asked for as S3 has it: mode, end, and a checksum', async () => {
    const server = await InProcessS3.start();
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
    try {
      server.state.buckets.set('anchors', new Map());
      const objects = await openS3({
        kind: 's3',
        bucket: 'anchors',
        prefix: 'p',
        endpoint: server.endpoint,
        region: 'us-east-1',
      });
      const place = objectPlace(objects, 30, () => Date.UTC(2026, 0, 1));
      await place.put(ANCHOR, never);
      const put = server.requests.find(({ method }) => method === 'PUT')!;
      expect(put.headers).toMatchObject({
        'x-amz-object-lock-mode': 'COMPLIANCE',
        'x-amz-object-lock-retain-until-date': expect.stringContaining('2026-01-31'),
        'if-none-match': '*',
      });
      expect(put.headers['content-md5']).toMatch(/^.{24}$/);
      await place.close();
    } finally {
      vi.unstubAllEnvs();
      await server.close();
    }
  });

  it('are told apart by what they begin with', async () => {
    for (const place of ['s3://no_bucket!/x', 's3:bucket/x', 'http://'])
      await expect(
        openAnchorLocation({ place, lockDays: 0, s3: { endpoint: null, region: null } }),
      ).rejects.toMatchObject({ code: 'bad_option' });
  });
});

/** A place that fails as often as it is told to. */
class FakePlace implements AnchorLocation {
  readonly name = 'here';
  readonly anchors: Anchor[] = [];
  failures = 0;
  isClosed = false;
  async put(anchor: Anchor): Promise<void> {
    if (this.failures-- > 0) throw new Error('not now');
    this.anchors.push(anchor);
  }
  async close(): Promise<void> {
    this.isClosed = true;
  }
}

describe('anchoring', () => {
  it('comes at the start, every so often where something changed, behind a scavenge, after failures, and at the stop', async () => {
    const storage = new MemoryStorage();
    const clock = new ManualClock(Date.UTC(2026, 10, 22));
    const open = await openProven(storage, { clock });
    const place = new FakePlace();
    const warnings: string[] = [];
    let isScavenging = false;
    const anchoring = new Anchoring({
      hashChain: () => open.hashChain,
      isScavenging: () => isScavenging,
      place,
      everyMs: 600_000,
      clock,
      meter: silentMeter,
      log: {
        ...silentLog,
        warn: (message) => {
          warnings.push(message);
        },
      },
    });
    const stopping = new AbortController();
    const running = anchoring.run(stopping.signal);
    await fill(open, new Random(71), 500);
    await clock.advance(6_000);
    expect(place.anchors).toHaveLength(1);
    await clock.advance(1_300_000);
    expect(place.anchors).toHaveLength(1);
    await append(open, 'kept', new Uint8Array(10));
    await clock.advance(600_000);
    expect(place.anchors).toHaveLength(2);
    isScavenging = true;
    await scavenge(open);
    await clock.advance(10_000);
    expect(place.anchors).toHaveLength(2);
    isScavenging = false;
    await clock.advance(10_000);
    expect(place.anchors).toHaveLength(3);
    expect(place.anchors[2]!.receipts).toBeGreaterThan(0);
    place.failures = 7;
    await append(open, 'kept', new Uint8Array(10));
    await clock.advance(640_000);
    expect(place.anchors).toHaveLength(3);
    expect(warnings).toHaveLength(5);
    await clock.advance(700_000);
    expect(place.anchors).toHaveLength(4);
    expect(anchoring.figures()).toMatchObject({ position: place.anchors[3]!.position });
    await append(open, 'kept', new Uint8Array(10));
    stopping.abort();
    await running;
    await anchoring.close();
    expect(place).toMatchObject({ isClosed: true });
    expect(place.anchors).toHaveLength(5);
    await open.close();
    expect(await verify(storage, place.anchors, true)).toMatchObject({ findings: 0, anchors: 5 });
  });
});
