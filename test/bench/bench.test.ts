import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { FIGURES } from './figures.ts';
import { median, row } from './figure.ts';
import { runFigures, settingsFor } from './main.ts';
import { answerLength } from './processes/http-load.ts';
import { resultsPage } from './report.ts';
import { bySize, IS_LONG_RUN } from '../support/run-size.ts';

const folder = mkdtempSync(join(tmpdir(), 'skua-bench-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Of each part that is measured what takes about a second; all of them are for `npm run test:all`. */
const SAMPLE = [
  'append-single',
  'scavenge-chunk',
  'object-requests',
  'append-batch',
  'append-http',
  'backup-s3',
  'index-rebuild',
  'memory',
  'read-forward',
  'scavenge-accumulation',
];

if (IS_LONG_RUN)
  describe('every figure runs and yields numbers', () => {
    const settings = settingsFor(folder, 'smoke', () => {});
    it.each(
      FIGURES.filter(({ name }) => bySize(SAMPLE, SAMPLE, [name]).includes(name)).map(
        (figure) => [figure.name, figure] as const,
      ),
    )('%s', async (_name, figure) => {
      const results = await runFigures([figure], settings);
      const rows = results[0]!.rows;
      expect(rows.length).toBeGreaterThan(0);
      for (const one of rows) {
        for (const value of [one.limit.median, one.ours.median, one.ratio, one.ratioMin, one.ratioMax]) {
          expect(value, one.title).toBeGreaterThan(0);
          expect(Number.isFinite(value), one.title).toBe(true);
        }
        expect(one.notes.join()).not.toContain('NaN');
      }
    });
  });

describe('harness', () => {
  it('takes the ratio of the medians and the range of the pairs', () => {
    const result = row('r', 'x', { limit: [10, 20, 30], ours: [5, 30, 12] }, { kind: 'at least', value: 0.6 });
    expect(result.ratio).toBe(12 / 20);
    expect([result.ratioMin, result.ratioMax]).toEqual([0.4, 1.5]);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  it('puts the newest rows in their places, and keeps why one falls short', () => {
    const page =
      '# Speed\n\n- **A**: an old machine\n\n| What | Ours | Limit | Ratio | Reach | On | |\n|---|---|---|---|---|---|---|\n| r | 9 x | 20 | 0.45 (0.4-0.5) | ≥ 0.6 | A | missed: a reason |\n| s | 1 x | 1 | 1 | ≥ 0.6 | A | met |\n';
    const [r, t] = ['r', 't'].map((title) =>
      row(title, 'x', { limit: [10, 20, 30], ours: [5, 10, 12] }, { kind: 'at least', value: 0.6 }),
    );
    const written = resultsPage(page, 'a new machine', [r!, t!]);
    expect(written.split('\n').slice(2, 4)).toEqual(['- **A**: an old machine', '- **B**: a new machine']);
    expect(written.split('\n').slice(7)).toEqual([
      '| r | 10 x | 20 | 0.5 (0.4-0.5) | ≥ 0.6 | B | missed: a reason |',
      '| s | 1 x | 1 | 1 | ≥ 0.6 | A | met |',
      '| t | 10 x | 20 | 0.5 (0.4-0.5) | ≥ 0.6 | B | missed |',
      '',
    ]);
    expect(resultsPage(written, 'a new machine', [r!])).toBe(written);
  });

  it('knows where an answer ends', () => {
    const at = (text: string): number => answerLength(Buffer.from(text, 'latin1'));
    expect(at('HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nabcHTTP')).toBe(46);
    expect(at('HTTP/1.1 201 Created\r\nContent-Length: 3\r\n\r\nab')).toBe(-1);
    expect(at('HTTP/1.1 201 Created\r\ncontent-le')).toBe(-1);
    const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n';
    expect(at(chunked)).toBe(chunked.length);
    expect(at(chunked.slice(0, -2))).toBe(-1);
  });
});
