import { describe, expect, test } from 'vitest';
import { unexplained } from '../../support/exchanges.ts';
import { replayRecording } from '../../support/recorded-node.ts';

/** When the exchanges were recorded: `$maxAge` depends on it. */
const RECORDED_AT_MS = Date.UTC(2026, 10, 21, 7, 28, 12);

describe('the recorded exchanges', () => {
  test('are answered alike, but for what was decided otherwise', async () => {
    const result = await replayRecording(RECORDED_AT_MS);
    expect(result.compared).toBe(85);
    expect(unexplained(result)).toEqual([]);
  });

  test('would show a changed body, header or status', async () => {
    const body = await replayRecording(RECORDED_AT_MS, async (response) => {
      const text = await response.text();
      return new Response(text === '' ? null : text.replace('"relation": "edit"', '"relation": "edit" '), response);
    });
    expect(new Set(unexplained(body).map(({ what }) => what))).toEqual(new Set(['body']));
    expect(unexplained(body).length).toBeGreaterThan(30);
    const header = await replayRecording(RECORDED_AT_MS, (response) => {
      response.headers.delete('vary');
      return response;
    });
    expect(new Set(unexplained(header).map(({ what }) => what))).toEqual(new Set(['header vary']));
  });
});
