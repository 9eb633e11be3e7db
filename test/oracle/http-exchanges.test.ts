import { describe, expect, it } from 'vitest';
import { oracleTimeMs } from '../support/fixtures.ts';
import { replayRecording } from '../support/recorded-node.ts';

/**
 * The recorded HTTP exchanges against our handlers over our store on the same directory. Every deviation is listed
 * here with its reason; one that is not listed fails the test, and so does one that is listed and no longer occurs.
 */

/** `index what`, by reason. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'Pages of other origins are let in only where an option names them.': each(
    'header access-control-allow-origin',
    '0-45 49-84',
  ),
  'No cache that many use keeps what was sent to one caller, and none keeps for long what may be erased.': each(
    'header cache-control',
    '0-7 9-15 17-31 36-45 55 65-66 68-69 73-74 81-83',
  ),
  'A reply varies by all that it depends on.': each(
    'header vary',
    '0-7 9-15 17-31 36-45 54-55 65-66 68-69 73-74 81-83',
  ),
  'Bad input that the reference answers with 500 is 400.': ['57 status'],
  'ES-ResolveLinkTos: False turns resolution off, as documented.': ['22 body'],
  'Error bodies are problem documents; the recorded text, where there is one, is the detail.': [
    '16 header content-type',
    '16 body',
    '32 header content-type',
    '32 body',
    '33 header content-type',
    '33 body',
    '34 header content-type',
    '34 body',
    '35 header content-type',
    '35 body',
    '46 header content-type',
    '46 body',
    '47 header content-type',
    '47 body',
    '48 header content-type',
    '48 body',
    '52 header content-type',
    '56 header content-type',
    '56 body',
    '57 header content-type',
    '57 body',
    '58 header content-type',
    '58 body',
    '61 header content-type',
    '61 body',
    '71 header content-type',
    '71 body',
    '76 header content-type',
    '76 body',
    '77 header content-type',
    '77 body',
    '79 header content-type',
    '79 body',
  ],
  'A missing role is 403, and 401 always names the scheme.': [
    '46 header www-authenticate',
    '47 header www-authenticate',
    '48 status',
  ],
  'What failed about users is a problem document, too, with the members that clients look at.': ['52 body'],
  'This node is another one: version, ids, positions, and no TCP ports.': ['53 body', '54 body'],
  'A reload waits, and tells what it changed.': ['84 header content-type', '84 body'],
  'An event without an id: behind the recorded text the body says what to do.': ['63 body'],
  'A scavenge that is already running is 409.': ['79 status'],
  "Our memtable is written before the index is scavenged, and there are attribute indexes, so there are other tables; and the last chunk holds no records of that node's start.":
    ['81 body', '82 header etag', '82 body'],
  "The recorded node had written records of its own start behind the directory's last one.": [
    '39 header etag',
    '39 body',
    '40 header etag',
    '40 body',
    '43 header etag',
  ],
};

/** The same of many exchanges: numbers and ranges of them. */
function each(what: string, indices: string): string[] {
  return indices.split(' ').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => `${first + i} ${what}`);
  });
}

describe('http-exchanges.json', () => {
  it('is answered as recorded, but for the listed deviations', async () => {
    const { deviations, compared } = await replayRecording(oracleTimeMs('orders-1-before'));
    console.log(`${compared} exchanges compared, ${deviations.length} deviations:`);
    const found: Record<string, string[]> = {};
    for (const { index, what, reason, expected, actual } of deviations) {
      (found[reason ?? 'NOBODY DECIDED THIS'] ??= []).push(`${index} ${what}`);
      if (reason === null)
        console.log(`exchange ${index}, ${what}\n  recorded ${String(expected)}\n  ours     ${String(actual)}`);
    }
    for (const [reason, list] of Object.entries(found)) console.log(`  ${reason}\n    ${list.join(', ')}`);
    expect(found).toEqual(EXPECTED);
    expect(compared).toBe(85);
  });
});
