import { EXIT } from '../cli/io.ts';
import type { ExitCode } from '../cli/io.ts';

/** What an answer to a call means (webhook-source.md part 7), and with which code a command ends. */

const MEANINGS: ReadonlyMap<number, string> = new Map([
  [201, 'The event is written, durably.'],
  [202, 'Accepted: the event is about to be written.'],
  [400, 'Nothing is written: the body is empty or no JSON in UTF-8, or the script skipped the call. `skua webhook test` shows what a script makes of a file.'],
  [401, 'Refused: the signature is missing, malformed or wrong, or the clocks are too far apart. Compare scheme and secret with the settings of the connector.'],
  [403, 'Refused by the receiver.'],
  [404, 'No connector of this id runs there. Create and start it first, or check the address.'],
  [405, 'The address takes no calls. It ends in /webhook/ and the id of a connector.'],
  [408, 'The receiver waited too long for the body.'],
  [413, 'The body is larger than the receiver takes.'],
  [415, 'The receiver takes JSON only. Leave out --content-type, or give application/json.'],
  [429, 'The receiver takes no more calls for now. Try again later.'],
  [500, 'Nothing is written: the script failed, took too long, or named a stream or type that is not possible. `skua webhook test` shows why.'],
  [503, 'The connector can take no calls just now, or stopped meanwhile. Send it again, with the same --id so that it is written once.'],
  [504, 'Not confirmed in time: the event may still be written. Send it again, with the same --id so that it is written once.'],
]);

export function meaningOf(status: number): string {
  const known = MEANINGS.get(status);
  if (known !== undefined) return known;
  if (isTaken(status)) return 'The receiver took it.';
  return status >= 300 && status < 400 ? 'The receiver is elsewhere, and a redirect is not followed. Name its address itself.' : 'The receiver did not take it.';
}

export function exitCodeOf(status: number): ExitCode {
  if (isTaken(status)) return EXIT.ok;
  if (status === 401 || status === 403) return EXIT.refused;
  return status === 503 ? EXIT.unreachable : EXIT.failed;
}

function isTaken(status: number): boolean {
  return status >= 200 && status < 300;
}
