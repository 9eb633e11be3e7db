import { guidToText } from '../guid.ts';
import { FLAG_JSON, FLAG_REDACTED, type PrepareFields, type RecordFrame, timestampMsAt, timestampTicksAt } from '../log/records.ts';
import { internText } from '../text.ts';
import type { StoredEvent } from './api.ts';
import { shownData } from './retention.ts';

const NO_BYTES = new Uint8Array(0);

/** The event in a parsed prepare. All events are made here, so that they have one shape. */
export function storedEvent(frame: RecordFrame, f: PrepareFields, stream: string, number: number, commitPosition: number): StoredEvent {
  const b = frame.bytes;
  const flags = f.flags;
  return {
    stream,
    number,
    type: internText(b, f.typeAt, f.typeLength),
    id: guidToText(b, f.eventIdAt),
    isJson: (flags & FLAG_JSON) !== 0,
    isRedacted: (flags & FLAG_REDACTED) !== 0,
    data: shownData(frame, f),
    metadata: f.metadataLength === 0 ? NO_BYTES : b.subarray(f.metadataAt, f.metadataAt + f.metadataLength),
    position: commitPosition,
    preparePosition: frame.position,
    createdMs: timestampMsAt(b, f.timestampAt),
    createdTicks: timestampTicksAt(b, f.timestampAt),
    link: null,
    linkTargetMissing: false,
  };
}
