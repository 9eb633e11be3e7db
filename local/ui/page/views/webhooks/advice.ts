/** What to do about a call that was refused, by what it was answered and why. */

const BY_REASON: readonly (readonly [begin: string, advice: string])[] = [
  [
    'signature-missing',
    'The call had no signature in this header. Make sure that the sender signs, with the scheme set here. Calls from anyone but the sender look like this, too.',
  ],
  [
    'signature-malformed',
    'The header was there, but holds no signature of this scheme. Compare the scheme with what the sender documents.',
  ],
  [
    'signature-wrong',
    'Sender and connector have different secrets, or something in between changed the body. Give both the same secret: replace it in the settings and restart.',
  ],
  [
    'timestamp-missing',
    'The scheme signs a timestamp, and the call had none. Compare the scheme with what the sender documents.',
  ],
  [
    'timestamp-malformed',
    'The time in the header is not a Unix time in seconds. Compare the scheme with what the sender documents.',
  ],
  [
    'timestamp-outside-tolerance',
    'The call was signed too long ago, or the clocks differ: compare the clock of the node, or widen the tolerance in the settings.',
  ],
  [
    'id-missing',
    'The scheme signs the delivery id, and the call had none. Compare the scheme with what the sender documents.',
  ],
  ['id-malformed', "The delivery id can't be signed this way. Compare the scheme with what the sender documents."],
  [
    'The body is empty',
    'Connectors take one JSON value in UTF-8. Check what the sender sends; a form or a test without a body looks like this.',
  ],
  ['The body took too long', 'The sender, or a proxy before the node, is slow. It will retry.'],
  ['The body is too long', 'Have the sender send less, or raise the body limits in the options of the node.'],
  [
    'Too many bodies',
    'More calls arrive than the node takes at once. Senders retry; raise the limits in the options if this persists.',
  ],
  [
    'Too many accepted calls',
    'Events arrive faster than they can be written. Senders retry; check the disk and the rate of this connector.',
  ],
  ['Too many calls wait', 'More calls arrive than scripts can run. Senders retry; a faster script helps.'],
  [
    'The script ran longer',
    'A script has 100 ms. Look for a loop that does not end for such a payload, and try it in the settings.',
  ],
  [
    'The last runs of this script',
    'The script timed out several times and is suspended for now. Look for a loop that does not end, and try it in the settings.',
  ],
  [
    'The connector may not write',
    'The script returned a stream that the setting Streams does not list. Add it there, or change the script.',
  ],
  ['The script names a stream', 'Change the script to return a valid stream name.'],
  ['The script returns an empty schema', 'Leave out schema, or return a non-empty string.'],
  ['The schema is', 'Change the script to return a shorter type.'],
  [
    'The event could not be written',
    'The call had been accepted, and its event is lost unless the sender retries. See the reason; with “Answer when the event is durable”, senders learn of such failures.',
  ],
  [
    'The event was not written within',
    'The node was slow. The event may be there; the sender retries, and deduplication keeps it from being written twice.',
  ],
  ['The event would have', 'The payload is larger than an event may be. Have the sender send less.'],
  ['The connector is stopping', 'It was being stopped or restarted. Senders retry.'],
];

/** Reasons that say it themselves. */
const PLAIN = ['The call is form-encoded', 'The content type'];

/** Null where the reason says it. A note that another client has written may lack the status. */
export function adviceOf(status: number | null, reason: string): string | null {
  if (PLAIN.some((begin) => reason.startsWith(begin))) return null;
  const found = BY_REASON.find(([begin]) => reason.startsWith(begin));
  if (found !== undefined) return found[1];
  if (status === 500)
    return 'The script failed with this payload. Try it in the settings with such a payload; the line is named in the reason.';
  if (status === 503) return 'The node could not take the call at that moment. Senders retry.';
  return 'See the reason, and the log of the node around this time.';
}
