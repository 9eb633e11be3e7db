import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { join } from 'node:path';
import { headersOfSources, hostileTexts, hostileValues, Sender } from '../../support/hostile.ts';
import { startNode } from '../child.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';

/** All headers of a request may have 32 KiB together. */
const HEADER_LENGTH = 31_500;
const TOKEN_LENGTH = 32_768;
/** What is linear takes twice as long for twice the text, and something for the request itself. */
const RATIO_MAX = 3;

export const hostileInput: Figure = {
  name: 'hostile-input',
  how: 'A node gets reads whose headers, each that the sources know in turn, hold the same character again and again, and JSON events of long tokens (numbers, escapes, brackets), which it takes apart for whoever reads them as Atom with their bodies. The limit is the time of all such requests with 16 kB, ours that with 32 kB, one after another over one connection: time that grows with the text, and no faster, makes it at most twice as long.',
  async run(settings) {
    const node = await startNode(join(settings.folder, 'hostile-input'));
    const sender = new Sender(`http://127.0.0.1:${node.port}`, 1);
    const headers = async (length: number): Promise<number> => {
      const sent = headersOfSources().flatMap((name) =>
        hostileTexts(name, length).map((text) => ({ accept: 'application/json', [name]: text })),
      );
      const begin = performance.now();
      for (const each of sent) await sender.status('/streams/none', { headers: each });
      return performance.now() - begin;
    };
    const tokens = async (length: number): Promise<number> => {
      const values = hostileValues(length);
      const begin = performance.now();
      for (const value of values) {
        const stream = `/streams/${randomUUID()}`;
        await sender.status(stream, {
          method: 'POST',
          body: `{"a":${value}}`,
          headers: { 'content-type': 'application/json', 'es-eventid': randomUUID(), 'es-eventtype': 'made' },
        });
        await sender.status(`${stream}?embed=pretty`, { headers: { accept: 'application/vnd.eventstore.atom+json' } });
      }
      return performance.now() - begin;
    };
    try {
      const rows = [];
      for (const [title, pass, length] of [
        ['hostile headers of 32 kB, beside 16 kB', headers, HEADER_LENGTH],
        ['hostile JSON tokens of 32 kB, beside 16 kB', tokens, TOKEN_LENGTH],
      ] as const) {
        await pass(length);
        rows.push(
          row(
            title,
            'ms',
            await alternate(
              settings.windows,
              () => pass(length / 2),
              () => pass(length),
            ),
            { kind: 'at most', value: RATIO_MAX },
          ),
        );
      }
      return rows;
    } finally {
      sender.close();
      await node.stop();
    }
  },
};
