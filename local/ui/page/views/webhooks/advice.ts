/** What to do about a call that was refused, by what it was answered and why. */

const BY_REASON: readonly (readonly [begin: string, advice: string])[] = [
  ['signature-missing', 'The call had no signature in this header. See that the sender signs, and by the scheme that is set here. Calls of others than the sender look like this, too.'],
  ['signature-malformed', 'The header was there, but holds no signature of this scheme. Compare the scheme with what the sender documents.'],
  ['signature-wrong', 'Sender and connector have different secrets, or something in between has changed the body. Give both the same secret: replace it in the settings, and restart.'],
  ['timestamp-missing', 'The scheme signs a time, and the call had none. Compare the scheme with what the sender documents.'],
  ['timestamp-malformed', 'The time in the header is no Unix time in seconds. Compare the scheme with what the sender documents.'],
  ['timestamp-outside-tolerance', 'The call was signed too long ago, or the clocks differ: compare the clock of the node, or widen the tolerance in the settings.'],
  ['id-missing', 'The scheme signs the id of the delivery, and the call had none. Compare the scheme with what the sender documents.'],
  ['id-malformed', 'The id of the delivery can\'t be signed so. Compare the scheme with what the sender documents.'],
  ['The body is empty', 'Connectors take one JSON value in UTF-8. See what the sender sends; a form or a test without a body looks like this.'],
  ['The body took too long', 'The sender, or a proxy before the node, is slow. It will send it again.'],
  ['The body is too long', 'Let the sender send less, or raise the limits of bodies in the options of the node.'],
  ['Too many bodies', 'More calls arrive than the node takes at once. Senders come again; raise the limits in the options if this lasts.'],
  ['Too many accepted calls', 'Events come faster than they are written. Senders come again; look at the disk and at the rate of this connector.'],
  ['Too many calls wait', 'More calls come than scripts can be run. Senders come again; a quicker script helps.'],
  ['The script ran longer', 'A script has 100 ms. Look for a loop that does not end with such a payload, and try it in the settings.'],
  ['The last runs of this script', 'The script took too long several times, and rests. Look for a loop that does not end, and try it in the settings.'],
  ['The connector may not write', 'The script returned a stream that the setting Streams does not name. Add it there, or change the script.'],
  ['The script names a stream', 'Change the script, so that it returns a name that a stream may have.'],
  ['The script returns an empty schema', 'Leave schema out, or return a text.'],
  ['The schema is', 'Let the script return a shorter type.'],
  ['The event could not be written', 'The call had been accepted, and its event is lost unless the sender repeats it. See the reason; waiting for the write tells senders of such failures.'],
  ['The event was not written within', 'The node was slow. The event may be there; the sender comes again, and deduplication sees to it that it stays one.'],
  ['The event would have', 'The payload is larger than an event may be. Let the sender send less.'],
  ['The connector is stopping', 'It was stopped or restarted just then. Senders come again.'],
];

/** Reasons that say it themselves. */
const PLAIN = ['The call is form-encoded', 'The content type'];

/** Null where the reason says it. A note that somebody else has written may lack the status. */
export function adviceOf(status: number | null, reason: string): string | null {
  if (PLAIN.some((begin) => reason.startsWith(begin))) return null;
  const found = BY_REASON.find(([begin]) => reason.startsWith(begin));
  if (found !== undefined) return found[1];
  if (status === 500) return 'The script failed with this payload. Try it in the settings with such a payload; the line is named in the reason.';
  if (status === 503) return 'The node could not take it just then. Senders come again.';
  return 'See the reason, and the log of the node around this time.';
}
