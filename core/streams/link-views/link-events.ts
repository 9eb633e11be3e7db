import { guidFromText, guidToText } from '../../base/guid.ts';
import { encodeText } from '../../base/text.ts';
import type { StoredEvent } from '../api.ts';
import { LINK_TYPE } from '../format/names.ts';

/** Links that stand nowhere in the log: each is made of the event that it points to, and equal at every read. */

/** Laid over the id of the target, so that link and target have two ids. */
const OVERLAY = 0x6c;
const ID_BYTES = 16;
/** The low bytes of an id have the position laid over them: one id may be that of events of several streams. */
const POSITION_BYTES = 6;

/** The link of a view to an event, of which the page has looked at the record. */
export function linkTo(view: string, target: StoredEvent): StoredEvent {
  const { stream, number, id, position, preparePosition, createdMs, createdTicks } = target;
  return {
    stream: view,
    number: preparePosition,
    type: LINK_TYPE,
    id: linkId(id, preparePosition),
    isJson: false,
    isRedacted: false,
    data: encodeText(`${number}@${stream}`),
    metadata: encodeText(JSON.stringify({ $c: position, $p: preparePosition, $o: stream, $causedBy: id })),
    position,
    preparePosition,
    createdMs,
    createdTicks,
    link: null,
    linkTargetMissing: false,
  };
}

function linkId(id: string, position: number): string {
  const bytes = new Uint8Array(ID_BYTES);
  guidFromText(id, bytes, 0);
  for (let i = 0; i < ID_BYTES; i++) bytes[i]! ^= OVERLAY;
  let rest = position;
  for (let i = 1; i <= POSITION_BYTES; i++) {
    bytes[ID_BYTES - i]! ^= rest % 256;
    rest = Math.floor(rest / 256);
  }
  return guidToText(bytes, 0);
}

/** What a page of a view has for each event that it found: the link, or the event with it. */
export function asLinks(view: string, events: StoredEvent[], isResolved: boolean): StoredEvent[] {
  return events.map((event) => {
    const link = linkTo(view, event);
    return isResolved ? { ...event, link } : link;
  });
}
