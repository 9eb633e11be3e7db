import { BACKUP_JOB } from '../../core/backup/jobs/jobs.ts';
import type { BackupJobArgs, BackupJobResult, RepositorySpec } from '../../core/backup/api.ts';
import type { Manifest } from '../../core/backup/format/snapshot-manifest.ts';
import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import { idNeedles } from '../../core/scavenge/needles/needles.ts';
import { checkReadableName, metastreamOf } from '../../core/streams/format/names.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeCompression } from '../../infra/node-compression.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import type {
  AppendCondition,
  AppendResult,
  BackupOptions,
  BackupResult,
  Checkpoint,
  CheckpointOptions,
  DeleteOptions,
  ErasureProof,
  Expected,
  Explanation,
  NewEvent,
  Position,
  ProveErasedOptions,
  ReadAllOptions,
  ReadOptions,
  RecordedEvent,
  RecordedMetadata,
  RedactOptions,
  RedactResult,
  ScavengeOptions,
  ScavengeResult,
  SetMetadataOptions,
  Store,
  StreamAppend,
  StreamAppended,
  StreamInfo,
  StreamMetadata,
  SubscribeToAllOptions,
  SubscribeToStreamOptions,
  TaggedEvent,
} from './api.ts';
import type { Backend } from './backend.ts';
import { metadataEvent } from '../event-store/metadata-members.ts';
import { inWords } from '../event-store/words.ts';
import { appendResult, bytesEvents, expectedNumber, taggedAppend } from './embedded-events.ts';
import { positionAt } from '../event-store/values.ts';
import { readMetadata } from './embedded-metadata.ts';
import { followAll, followStream, readAllStreams, readStream } from './reading.ts';
import { redactEvents } from './redacting.ts';
import { scavengeNow } from './scavenging.ts';

/** Bytes of a key of a repository. */
const KEY_BYTES = 32;

export class OpenedStore implements Store {
  readonly failed: Promise<SkuaError>;
  readonly #backend: Backend;
  readonly #closing = new AbortController();
  #closed: Promise<void> | null = null;
  #isScavenging = false;
  /** Of the last backup: what it stored need not be looked at again by the next one to the same repository. */
  #known: { readonly to: string; readonly manifest: Manifest } | null = null;

  constructor(backend: Backend) {
    this.#backend = backend;
    this.failed = backend.failed;
  }

  readonly append: Store['append'] = ((first: unknown, second: never, third: never) =>
    typeof first === 'string'
      ? this.#append(first, second, third)
      : this.#appendIf(first as TaggedEvent, second)) as Store['append'];

  async #appendIf(
    events: TaggedEvent | readonly TaggedEvent[],
    options: { readonly condition?: AppendCondition } = {},
  ): Promise<{ readonly position: Position; readonly isRepeat: boolean }> {
    this.#checkOpen();
    const [writes, condition] = taggedAppend(events, options);
    const { position, isRepeat } = await spoken(this.#backend.store.appendToStreams(writes, condition));
    return { position: positionAt(position), isRepeat };
  }

  async #append(
    stream: string,
    events: NewEvent | readonly NewEvent[],
    options: { readonly expected?: Expected } = {},
  ): Promise<AppendResult> {
    this.#checkOpen();
    const expected = expectedNumber(options.expected);
    return appendResult(await spoken(this.#backend.store.append(stream, expected, bytesEvents(events))));
  }

  async appendToStreams(
    appends: readonly StreamAppend[],
  ): Promise<{ streams: readonly StreamAppended[]; position: Position; isRepeat: boolean }> {
    this.#checkOpen();
    const writes = appends.map(({ stream, events, expected }) => ({
      stream,
      events: bytesEvents(events),
      expectedVersion: expectedNumber(expected),
    }));
    // The core has what is expected as conditions of the whole, and asks for one a stream.
    const checks = writes.flatMap(({ stream, expectedVersion }) =>
      expectedVersion === expectedNumber('any') ? [] : [{ stream, expectedVersion }],
    );
    const isRepeatable = appends.every(({ events }) => events.every(({ id }) => id !== undefined));
    const { streams, position, isRepeat } = await spoken(
      this.#backend.store.appendToStreams(
        writes.map((write) => ({ ...write, expectedVersion: expectedNumber('any') })),
        { checks, isRepeatable },
      ),
    );
    return {
      streams: streams.map((each) => ({
        stream: each.stream,
        version: each.lastEventNumber,
        position: positionAt(each.position),
      })),
      position: positionAt(position),
      isRepeat,
    };
  }

  read<Data = unknown, Metadata = unknown>(
    stream: string,
    options?: ReadOptions,
  ): AsyncIterable<RecordedEvent<Data, Metadata>> {
    return readStream(this.#backend.store, () => this.#checkOpen(), stream, options);
  }

  readAll<Data = unknown, Metadata = unknown>(options?: ReadAllOptions): AsyncIterable<RecordedEvent<Data, Metadata>> {
    return readAllStreams(this.#backend.store, () => this.#checkOpen(), options);
  }

  subscribe<Data = unknown, Metadata = unknown>(
    options: SubscribeToStreamOptions | SubscribeToAllOptions = {},
  ): AsyncIterable<RecordedEvent<Data, Metadata>> {
    const { store } = this.#backend;
    return options.stream === undefined
      ? followAll(store, () => this.#checkOpen(), options)
      : followStream(store, () => this.#checkOpen(), options);
  }

  async checkpoint(options: CheckpointOptions = {}): Promise<{ checkpoint: Checkpoint | null; end: number }> {
    this.#checkOpen();
    return spoken(this.#backend.store.checkpoint(options));
  }

  async delete(
    stream: string,
    { expected, hard = false }: DeleteOptions = {},
  ): Promise<{ readonly position: Position }> {
    this.#checkOpen();
    const { position } = await spoken(
      this.#backend.store.deleteStream(stream, expectedNumber(expected), hard ? 'hard' : 'soft'),
    );
    return { position: positionAt(position) };
  }

  async redact(stream: string, options: RedactOptions): Promise<RedactResult> {
    this.#checkOpen();
    return spoken(redactEvents(this.#backend.store, stream, options));
  }

  async info(stream: string): Promise<StreamInfo> {
    this.#checkOpen();
    const { lastEventNumber, isTombstoned, isSoftDeleted } = await this.#backend.store.streamInfo(stream);
    if (isTombstoned) return { stream, state: 'tombstoned', version: null };
    if (lastEventNumber < 0) return { stream, state: isSoftDeleted ? 'deleted' : 'none', version: null };
    return { stream, state: isSoftDeleted ? 'deleted' : 'live', version: lastEventNumber };
  }

  async metadata(stream: string): Promise<RecordedMetadata> {
    this.#checkOpen();
    return readMetadata(this.#backend.store, stream);
  }

  async setMetadata(
    stream: string,
    metadata: StreamMetadata,
    { expected }: SetMetadataOptions = {},
  ): Promise<AppendResult> {
    this.#checkOpen();
    const refusal = checkReadableName(stream);
    if (refusal !== null) throw refusal;
    return appendResult(
      await spoken(
        this.#backend.store.append(
          metastreamOf(stream),
          expectedNumber(expected),
          bytesEvents(metadataEvent(stream, metadata)),
        ),
      ),
    );
  }

  async scavenge(options: ScavengeOptions = {}): Promise<ScavengeResult> {
    this.#checkOpen();
    const { scavenger, store, idle, refresh } = this.#backend;
    if (this.#isScavenging)
      throw new SkuaError(
        'scavenge_in_progress',
        'A scavenge of this store is running: wait until it has finished, or stop it with its signal.',
        { scavengeId: scavenger.current() },
      );
    this.#isScavenging = true;
    try {
      return await scavengeNow(
        {
          scavenger,
          store,
          clock: systemClock,
          closing: this.#closing.signal,
          ...(idle !== undefined && { idle }),
          ...(refresh !== undefined && { refresh }),
        },
        options,
      );
    } finally {
      this.#isScavenging = false;
    }
  }

  async explain(stream: string): Promise<Explanation> {
    this.#checkOpen();
    const { lastEventNumber, removed, kept } = await this.#backend.scavenger.explain(stream);
    return { stream, version: lastEventNumber < 0 ? null : lastEventNumber, removed, kept };
  }

  async proveErased({ stream, events = [], signal }: ProveErasedOptions): Promise<ErasureProof> {
    this.#checkOpen();
    signal?.throwIfAborted();
    if (stream === undefined && events.length === 0)
      throw new SkuaError('bad_option', 'Nothing to search for: name a stream or event ids.');
    const refusal = stream === undefined ? null : checkReadableName(stream);
    if (refusal !== null) throw refusal;
    idNeedles(events);
    const report = await reasoned(this.#backend.search({ stream: stream ?? null, events }, signal), signal);
    const { files, bytes, traces, residues, findings } = report;
    return {
      isErased: traces === 0,
      isKnown: stream === undefined || traces + residues > 0,
      files,
      bytes,
      traces,
      residues,
      findings: findings.map(({ kind, file, offset, what }) => ({ kind, file, offset, what })),
    };
  }

  async backup({
    to,
    key,
    throttleBytesPerSecond = 0,
    endpoint,
    region,
    signal,
  }: BackupOptions): Promise<BackupResult> {
    this.#checkOpen();
    signal?.throwIfAborted();
    if (key !== undefined && (!(key instanceof Uint8Array) || key.length !== KEY_BYTES))
      throw new SkuaError('bad_option', `The key of a repository has ${KEY_BYTES} bytes.`, { option: 'key' });
    if (!Number.isSafeInteger(throttleBytesPerSecond) || throttleBytesPerSecond < 0)
      throw new SkuaError('bad_option', 'throttleBytesPerSecond must be a whole number of 0 or more.', {
        option: 'throttleBytesPerSecond',
      });
    const spec = await makeRepository(to, { endpoint, region, key });
    this.#checkOpen();
    const hold = await this.#backend.hold();
    try {
      const args: BackupJobArgs = {
        ...spec,
        cause: 'manual',
        snapshot: hold.snapshot,
        known: this.#known?.to === to ? this.#known.manifest : null,
        throttleBytesPerSecond,
        nowMs: systemClock.nowMs(),
      };
      const { manifest, report } = (await reasoned(
        this.#backend.jobs.run(BACKUP_JOB, args, signal === undefined ? {} : { signal }),
        signal,
      )) as BackupJobResult;
      this.#known = { to, manifest };
      return { id: manifest.id, files: report.files, bytes: report.sizeBytes, bytesNew: report.bytesNew };
    } finally {
      await hold.release();
    }
  }

  close(): Promise<void> {
    this.#closing.abort();
    return (this.#closed ??= this.#backend.close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #checkOpen(): void {
    if (this.#closed !== null) throw new SkuaError('store_closed', 'The store is closed: reopen it.');
  }
}

/**
 * Refuses what is no repository, or not one of this key, before anything is held for it; makes it where there is none.
 */
async function makeRepository(
  to: string,
  {
    endpoint,
    region,
    key = null,
  }: {
    readonly endpoint: string | undefined;
    readonly region: string | undefined;
    readonly key: Uint8Array | null | undefined;
  },
): Promise<RepositorySpec> {
  const [{ openObjects, parseLocation: parsePlace }, { openRepository }] = await Promise.all([
    import('../../infra/objects/open-objects.ts'),
    import('../../core/backup/repository/repository.ts'),
  ]);
  const place = parsePlace(to, { endpoint: endpoint ?? null, region: region ?? null });
  const objects = await openObjects(place);
  try {
    const repository = await openRepository(
      objects,
      { key, create: true, compression: 'auto' },
      { clock: systemClock, ids: systemIds, digests: nodeDigests, keys: nodeKeys, compression: nodeCompression },
    );
    await repository.close();
    return { place, key, compression: 'auto' };
  } finally {
    await objects.close();
  }
}

/** Errors of writes in the words of the caller. */
async function spoken<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw isSkuaError(error) ? inWords(error) : error;
  }
}

/** A call that was ended by a signal rejects with the signal's reason. */
async function reasoned<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (signal?.aborted === true && isSkuaError(error, 'aborted')) throw signal.reason;
    throw error;
  }
}
