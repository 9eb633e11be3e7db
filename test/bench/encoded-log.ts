import { createHash, randomFillSync } from 'node:crypto';
import { closeSync, existsSync, fdatasyncSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { BlockCache } from '../../core/cache/cache.ts';
import { StreamIndex } from '../../core/index/index.ts';
import {
  chunkFileName,
  encodeFooter,
  encodeHeader,
  FOOTER_BYTES,
  HEADER_BYTES,
} from '../../core/log/format/chunk-format.ts';
import { encodePrepare, prepareFrameBytes, viewOf } from '../../core/log/format/records.ts';
import { silentLog } from '../../core/ports/log.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { WorkerJobs } from '../../infra/jobs/worker-jobs.ts';
import { openFolder } from './open-folder.ts';

/** Events of a stream, in the mean, unless it is said: their numbers go round all streams. */
const EVENTS_A_STREAM = 20;
const PREFIX = 'note-';
const STREAM_DIGITS = 8;
const MD5_BYTES = 16;
const FILE_UNIT_BYTES = 4_096;
/** A plain event of a transaction of its own: data, begin, end, implicit, committed, JSON. */
const FLAGS = 0x0127;
const TIME_MS = 1_700_000_000_000;
const EMPTY = new Uint8Array(0);
const TYPE = 'Noted';

export interface EncodedLogShape {
  readonly events: number;
  readonly chunkBytes: number;
  /** JSON of each event. */
  readonly data: string;
  /** What streams are called before their number, how many events each has, and of which type. */
  readonly prefix?: string;
  readonly eventsAStream?: number;
  readonly type?: string;
}

/** Streams of a log of so many events. */
export function encodedStreams(events: number, eventsAStream = EVENTS_A_STREAM): number {
  return Math.max(1, Math.floor(events / eventsAStream));
}

/** Name of stream number `n`, which holds the events n, n + streams, n + 2 streams, ... of the log. */
export function encodedStream(n: number): string {
  return `${PREFIX}${String(n).padStart(STREAM_DIGITS, '0')}`;
}

/**
 * A stopped directory of completed chunks, each with its MD5, that were encoded here and no store has written: millions
 * of events in the time that their bytes take. There is no index. Nobody appended these events, so nothing stands for
 * appends in what is measured.
 */
export function encodedLog(
  folder: string,
  { events, chunkBytes, data: json, prefix = PREFIX, eventsAStream, type = TYPE }: EncodedLogShape,
): void {
  mkdirSync(folder, { recursive: true });
  const streams = encodedStreams(events, eventsAStream);
  const [stream, data, eventType] = [`${prefix}${'0'.repeat(STREAM_DIGITS)}`, json, type].map((text) =>
    new TextEncoder().encode(text),
  ) as [Uint8Array, Uint8Array, Uint8Array];
  const recordBytes = prepareFrameBytes(stream.length, eventType.length, data.length, 0);
  const id = randomFillSync(new Uint8Array(16));
  const idView = viewOf(id);
  const out = Buffer.alloc(HEADER_BYTES + chunkBytes + 2 * FILE_UNIT_BYTES);
  const view = viewOf(out);
  let number = 0;
  for (let event = 0; event < events; number++) {
    const start = number * chunkBytes;
    out.fill(0);
    out.set(
      encodeHeader({
        version: 3,
        chunkSize: chunkBytes,
        startNumber: number,
        endNumber: number,
        isScavenged: false,
        chunkId: randomFillSync(new Uint8Array(16)),
      }),
      0,
    );
    let at = HEADER_BYTES;
    for (; event < events && at - HEADER_BYTES + recordBytes <= chunkBytes; event++) {
      const position = start + at - HEADER_BYTES;
      let rest = event % streams;
      for (let i = stream.length - 1; i >= stream.length - STREAM_DIGITS; i--) {
        stream[i] = 48 + (rest % 10);
        rest = Math.floor(rest / 10);
      }
      idView.setUint32(8, event, true);
      at = encodePrepare(
        out,
        at,
        {
          position,
          flags: FLAGS,
          transactionPosition: position,
          transactionOffset: 0,
          expectedVersion: Math.floor(event / streams) - 1,
          stream,
          eventId: id,
          correlationId: id,
          timestampMs: TIME_MS + event,
          timestampTicks: 0,
          eventType,
          data,
          metadata: EMPTY,
        },
        view,
      );
    }
    const dataEnd = at - HEADER_BYTES;
    const fileBytes = Math.ceil((at + FOOTER_BYTES) / FILE_UNIT_BYTES) * FILE_UNIT_BYTES;
    out.set(encodeFooter(dataEnd, dataEnd, 0), fileBytes - FOOTER_BYTES);
    out.set(
      createHash('md5')
        .update(out.subarray(0, fileBytes - MD5_BYTES))
        .digest(),
      fileBytes - MD5_BYTES,
    );
    const fd = openSync(join(folder, chunkFileName(number, 0)), 'w', 0o444);
    writeSync(fd, out, 0, fileBytes);
    fdatasyncSync(fd);
    closeSync(fd);
  }
  const end = Buffer.alloc(8);
  end.writeBigInt64LE(BigInt(number * chunkBytes));
  for (const name of ['writer.chk', 'chaser.chk']) writeFileSync(join(folder, name), end);
}

/**
 * As `encodedLog`, with the index that a start builds of it, whose tables are all written and merged. Built once a run.
 */
export async function indexedLog(folder: string, shape: EncodedLogShape, say: (line: string) => void): Promise<void> {
  if (existsSync(`${folder}.complete`)) return;
  say(`  building a log of ${shape.events} events and its index ...`);
  rmSync(folder, { recursive: true, force: true });
  encodedLog(folder, shape);
  // The index is built at the start, and its last entries are written by the stop.
  await (await openFolder(folder, { verifyChunks: false })).close();
  await mergeTables(folder);
  writeFileSync(`${folder}.complete`, '');
}

/** Merges the tables of a stopped directory until no level is full any more. */
async function mergeTables(folder: string): Promise<void> {
  const storage = new FilesystemStorage({ root: folder });
  const jobs = new WorkerJobs({ root: storage.root, indexRoot: storage.indexRoot });
  const index = await StreamIndex.open({
    ports: {
      storage,
      cache: new BlockCache(0),
      digests: jobs.digests,
      ids: systemIds,
      jobs,
      log: silentLog,
      clock: systemClock,
    },
    settings: { existenceFilterBytes: 0, verify: false },
    logEnd: Number.MAX_SAFE_INTEGER,
  });
  await index.flush();
  await index.close();
  await jobs.close();
}
