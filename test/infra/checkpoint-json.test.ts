import { describe, expect, test } from 'vitest';
import { checkpointText, parseCheckpoint } from '../../infra/sqlite/checkpoint-json.ts';

const point =
  '"scavengePoint":{"position":536870000,"eventNumber":2,"effectiveNow":"2024-01-02T03:04:05.6789012","threshold":1}';

describe('text of the checkpoint', () => {
  test.each([
    `{${point},"schemaVersion":"V0","checkpointStage":"Accumulating","doneLogicalChunkNumber":0}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Accumulating"}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Calculating","doneStreamHandle":{"kind":"Hash","streamHash":18117290996405977052}}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Calculating","doneStreamHandle":{"kind":"Hash","streamHash":18446744073709551615}}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Calculating","doneStreamHandle":{"kind":"Id","streamId":"\\"streamHash\\":5,"}}`,
    '{"scavengePoint":{"position":11197364,"effectiveNow":"2026-11-21T07:23:07.5419061"},"schemaVersion":"V0","checkpointStage":"ExecutingChunks","doneLogicalChunkNumber":51}',
    '{"scavengePoint":{"position":921731,"effectiveNow":"2026-11-21T07:55:37.905655","threshold":25},"schemaVersion":"V0","checkpointStage":"Done"}',
    '{"scavengePoint":{"position":719724,"effectiveNow":"2026-11-21T07:55:00","threshold":-1},"schemaVersion":"V0","checkpointStage":"Cleaning"}',
    `{${point},"schemaVersion":"V0","checkpointStage":"Accumulating","doneLogicalChunkNumber":7,"emptiesDeleted":true}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Done","emptiesDeleted":true}`,
  ])('is written as it was read: %s', (text) => {
    expect(checkpointText(parseCheckpoint(text)!)).toBe(text);
  });

  test('hashes are exact, and ticks beyond the millisecond', () => {
    const checkpoint = parseCheckpoint(
      `{${point},"schemaVersion":"V0","checkpointStage":"Calculating","doneStreamHandle":{"kind":"Hash","streamHash":18117290996405977052}}`,
    );
    expect(checkpoint).toEqual({
      point: {
        position: 536_870_000,
        eventNumber: 2,
        effectiveNowMs: Date.UTC(2024, 0, 2, 3, 4, 5, 678),
        effectiveNowTicks: 9_012,
        threshold: 1,
      },
      stage: 'Calculating',
      doneStream: {
        kind: 'hash',
        hi: Number(18_117_290_996_405_977_052n >> 32n),
        lo: Number(18_117_290_996_405_977_052n & 0xffff_ffffn),
      },
    });
  });

  test('a time that says that it is UTC, white space, and members that are null', () => {
    const text = `{ "scavengePoint": {"position": 5, "effectiveNow": "2024-01-02T03:04:05.5Z"}, "schemaVersion": "V0",
      "checkpointStage": "Calculating", "doneStreamHandle": {"kind": "Hash", "streamHash" : 97 } , "doneLogicalChunkNumber": null}`;
    expect(parseCheckpoint(text)).toEqual({
      point: { position: 5, eventNumber: 0, effectiveNowMs: Date.UTC(2024, 0, 2, 3, 4, 5, 500), threshold: 0 },
      stage: 'Calculating',
      doneStream: { kind: 'hash', hi: 0, lo: 97 },
    });
  });

  test.each([
    '',
    'null',
    '[]',
    '{}',
    '{',
    `{${point}}`,
    `{${point},"schemaVersion":"V1","checkpointStage":"Done"}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Finished"}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Accumulating","doneLogicalChunkNumber":-1}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Accumulating","doneLogicalChunkNumber":"1"}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Calculating","doneStreamHandle":{"kind":"Hash","streamHash":18446744073709551616}}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Calculating","doneStreamHandle":{"kind":"Hash","streamHash":-5}}`,
    `{${point},"schemaVersion":"V0","checkpointStage":"Calculating","doneStreamHandle":{"kind":"Id"}}`,
    '{"scavengePoint":{"position":5},"schemaVersion":"V0","checkpointStage":"Done"}',
    '{"scavengePoint":{"position":5,"effectiveNow":"yesterday"},"schemaVersion":"V0","checkpointStage":"Done"}',
    '{"scavengePoint":{"position":5,"effectiveNow":"2024-13-02T03:04:05"},"schemaVersion":"V0","checkpointStage":"Done"}',
    '{"scavengePoint":{"position":1.5,"effectiveNow":"2024-01-02T03:04:05"},"schemaVersion":"V0","checkpointStage":"Done"}',
  ])('no checkpoint: %s', (text) => {
    expect(parseCheckpoint(text)).toBeNull();
  });
});
