import { isSkuaError, SkuaError } from '../base/errors.ts';
import { guidToText } from '../base/guid.ts';
import { optional, orNull, record, uuid, whole, wrongText } from '../base/shape.ts';
import { END, HIT, untilHit } from '../base/step.ts';
import { decodeText } from '../base/text.ts';
import type { LogReader } from '../log/api.ts';
import { EPOCH_STREAM } from '../log/format/epochs.ts';
import { COMMIT, decodeCommit, parsePrepare, PREPARE, PrepareFields, RecordFrame } from '../log/format/records.ts';
import type { AllPosition, Checkpoint, CheckpointAnswer, CheckpointOptions, EventStore } from './api.ts';

/** Checkpoints of readers: which ones a log knows for its own, and why (CHECKPOINTS.md). */

interface CheckpointParts {
  readonly reader: LogReader;
  readonly events: Pick<EventStore, 'readEvent'>;
  readonly logId: string | null;
}

/** What stands at a position: a record with an id or without, nothing any more, or nothing that ever did. */
type Found = { readonly kind: 'record'; readonly id: string | null } | { readonly kind: 'gone' | 'none' };

const GONE: Found = { kind: 'gone' };
const NONE: Found = { kind: 'none' };

/** `EventStore.checkpoint`. */
export async function checkpointOf(parts: CheckpointParts, options: CheckpointOptions): Promise<CheckpointAnswer> {
  check(options);
  const { reader } = parts;
  const { after, id } = options;
  const end = reader.end;
  if (after !== undefined) await checkKnown(parts, after);
  const asked = options.position ?? after?.position;
  const position = asked ?? (await lastPlace(reader, end));
  if (position === null) return { checkpoint: null, end };
  if (after !== undefined && isBefore(position, after.position))
    throw new SkuaError(
      'bad_request',
      `The position ${place(position)} lies before the checkpoint that it follows, which is at ${place(after.position)}.`,
    );
  // What was asked for at the position of the checkpoint is the checkpoint.
  const seen = id ?? (after === undefined || isBefore(after.position, position) ? null : after.id);
  const found = await foundAt(reader, position);
  if (found.kind === 'record' && seen !== null && found.id !== seen) throw unknown(position, otherEvent(seen));
  return {
    checkpoint: {
      position: { commit: position.commit, prepare: position.prepare },
      id: found.kind === 'record' ? found.id : seen,
      epoch: await epochAt(parts.events, position.commit),
      log: parts.logId,
    },
    end,
  };
}

const positionShape = record<AllPosition>({ commit: whole(0), prepare: whole(0) });
const optionsShape = record<CheckpointOptions>({
  position: optional(positionShape),
  id: optional(uuid),
  after: optional(
    record<Checkpoint>({
      position: positionShape,
      id: orNull(uuid),
      epoch: orNull(record<NonNullable<Checkpoint['epoch']>>({ number: whole(0), position: whole(0), id: uuid })),
      log: orNull(uuid),
    }),
  ),
});

function check(options: CheckpointOptions): void {
  const wrong = optionsShape(options, '');
  if (wrong !== null) throw new SkuaError('bad_request', `${wrongText(wrong)}: give a checkpoint as it was given.`);
}

/** Throws `checkpoint_unknown` for one that is not of this log. */
async function checkKnown(parts: CheckpointParts, { position, id, epoch, log }: Checkpoint): Promise<void> {
  const found = await foundAt(parts.reader, position);
  if (found.kind === 'record' && id !== null && found.id !== id) throw unknown(position, otherEvent(id));
  const now = await epochAt(parts.events, position.commit);
  const isSameEpoch = now !== null && epoch !== null && now.position === epoch.position && now.id === epoch.id;
  // Epochs that a rule of their stream hides say nothing.
  if (now !== null && !isSameEpoch)
    throw unknown(
      position,
      `the log has been put back and written to since: epoch ${now.id} begins at ${now.position}`,
    );
  if ((found.kind === 'record' && id !== null) || isSameEpoch || (log !== null && log === parts.logId)) return;
  throw unknown(position, 'its event is gone, and nothing else shows that it is of this log');
}

/** It does not say which one is there: the reader may be one that must not know. */
function otherEvent(seen: string): string {
  return `another event is there than ${seen}`;
}

/** Throws `checkpoint_unknown` where no record begins or ever began. */
async function foundAt(reader: LogReader, position: AllPosition): Promise<Found> {
  const { commit, prepare } = position;
  if (commit >= reader.end) throw unknown(position, `the log ends at ${reader.end}`);
  const found = await recordAt(reader, prepare);
  const committed = prepare === commit ? found : await recordAt(reader, commit);
  if (found === NONE || committed === NONE) throw unknown(position, 'no record begins there');
  return committed.kind === 'record' ? found : committed;
}

async function recordAt(reader: LogReader, position: number): Promise<Found> {
  const frame = new RecordFrame();
  if ((await untilHit(() => reader.isBoundary(position))) === END) return NONE;
  if ((await untilHit(() => reader.readAt(position, frame))) !== HIT)
    return reader.isScavengedAt(position) ? GONE : NONE;
  if (frame.type === COMMIT) return { kind: 'record', id: decodeCommit(frame).correlationId };
  if (frame.type !== PREPARE) return { kind: 'record', id: null };
  const fields = new PrepareFields();
  parsePrepare(frame, fields);
  return { kind: 'record', id: guidToText(frame.bytes, fields.eventIdAt) };
}

async function lastPlace(reader: LogReader, end: number): Promise<AllPosition | null> {
  const frame = new RecordFrame();
  if ((await untilHit(() => reader.readBackward(end, frame))) !== HIT) return null;
  return { commit: frame.position, prepare: frame.position };
}

/** The newest epoch whose record begins at or before a position. They stand in the order of the log. */
async function epochAt(events: Pick<EventStore, 'readEvent'>, position: number): Promise<Checkpoint['epoch']> {
  const last = await epochEvent(events, 'last');
  if (last === null || last.position <= position) return last;
  let found: Checkpoint['epoch'] = null;
  for (let low = 0, high = last.number - 1; low <= high;) {
    const middle = Math.floor((low + high) / 2);
    const epoch = await epochEvent(events, middle);
    // What is gone is older than what is left.
    if (epoch !== null && epoch.position > position) high = middle - 1;
    else {
      found = epoch ?? found;
      low = middle + 1;
    }
  }
  return found;
}

async function epochEvent(events: Pick<EventStore, 'readEvent'>, asked: number | 'last'): Promise<Checkpoint['epoch']> {
  try {
    const { number, data } = await events.readEvent(EPOCH_STREAM, asked);
    // Members that are zero are left out.
    const { epochPosition = 0, epochId } = JSON.parse(decodeText(data)) as {
      readonly epochPosition?: unknown;
      readonly epochId?: unknown;
    };
    return typeof epochPosition === 'number' && typeof epochId === 'string'
      ? { number, position: epochPosition, id: epochId.toLowerCase() }
      : null;
  } catch (error) {
    if (error instanceof SyntaxError || NO_EPOCH.some((code) => isSkuaError(error, code))) return null;
    throw error;
  }
}

const NO_EPOCH = ['stream_not_found', 'event_not_found', 'stream_deleted'] as const;

function isBefore(one: AllPosition, other: AllPosition): boolean {
  return one.commit < other.commit || (one.commit === other.commit && one.prepare < other.prepare);
}

function place({ commit, prepare }: AllPosition): string {
  return `${commit}/${prepare}`;
}

function unknown(position: AllPosition, why: string): SkuaError {
  return new SkuaError(
    'checkpoint_unknown',
    `The checkpoint at ${place(position)} is not of this log: ${why}. It is of another log, or this one was restored to an earlier moment. What was made of the events up to there may have seen others: build it anew from the beginning.`,
    { position, why },
  );
}
