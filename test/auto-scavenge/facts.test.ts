import { describe, expect, test } from 'vitest';
import { formatFact, parseFact } from '../../core/auto-scavenge/facts.ts';
import type { Fact } from '../../core/auto-scavenge/facts.ts';

/** The JSON of core/auto-scavenge/README.md, "What is stored", to the letter. */

const AT = Date.UTC(2024, 9, 21, 14, 3, 7, 120);
const T = '2024-10-21T14:03:07.12+00:00';
const node = { address: '10.0.0.1', port: 2113 };
const NODE = '{"address":"10.0.0.1","port":2113}';
const UUID = '0b1f0e2c-9a54-4d8e-8f0e-6a3f6c1c2d3e';

const CASES: readonly (readonly [Fact, string])[] = [
  [
    { type: '$configuration-updated', schedule: '30 2 * * 0', atMs: AT },
    `{"schedule":"30 2 * * 0","updatedAt":"${T}"}`,
  ],
  [
    { type: '$cluster-scavenge-started', clusterScavengeId: UUID, members: [node], atMs: AT },
    `{"clusterScavengeId":"${UUID}","members":[${NODE}],"startedAt":"${T}"}`,
  ],
  [
    { type: '$cluster-scavenge-completed', clusterScavengeId: UUID, members: [node], atMs: AT },
    `{"clusterScavengeId":"${UUID}","members":[${NODE}],"completedAt":"${T}"}`,
  ],
  [{ type: '$cluster-members-changed', added: [node], removed: [] }, `{"added":[${NODE}],"removed":[]}`],
  [{ type: '$node-designated', node, atMs: AT }, `{"nodeId":${NODE},"designatedAt":"${T}"}`],
  [
    { type: '$node-scavenge-started', node, scavengeId: UUID, atMs: AT },
    `{"nodeId":${NODE},"scavengeId":"${UUID}","startedAt":"${T}"}`,
  ],
  [
    { type: '$node-scavenge-completed', node, result: 'Stopped', atMs: AT },
    `{"nodeId":${NODE},"completedAt":"${T}","result":"Stopped"}`,
  ],
  [{ type: '$pause-requested', atMs: AT }, `{"requestedAt":"${T}"}`],
  [{ type: '$paused', atMs: AT }, `{"pausedAt":"${T}"}`],
  [{ type: '$resumed', atMs: AT }, `{"resumedAt":"${T}"}`],
];

const bytes = (text: string) => new TextEncoder().encode(text);

describe('events', () => {
  test.each(CASES)('$type', (fact, json) => {
    expect(new TextDecoder().decode(formatFact(fact))).toBe(json);
    expect(parseFact(fact.type, bytes(json))).toEqual(fact);
  });

  test('those of the reference: local time, seven digits', () => {
    expect(parseFact('$paused', bytes('{"pausedAt":"2024-10-21T14:03:07.1234567+02:00"}'))).toEqual({
      type: '$paused',
      atMs: Date.UTC(2024, 9, 21, 12, 3, 7, 123),
    });
  });

  test.each([
    ['$initialized', '{}'],
    ['$paused', '{}'],
    ['$paused', 'x'],
    ['$paused', '[]'],
    ['$paused', '{"pausedAt":"soon"}'],
    ['$configuration-updated', `{"schedule":5,"updatedAt":"${T}"}`],
    ['$node-designated', `{"nodeId":{"address":"a"},"designatedAt":"${T}"}`],
    ['$node-scavenge-completed', `{"nodeId":${NODE},"completedAt":"${T}","result":"Perhaps"}`],
    ['$cluster-scavenge-started', `{"clusterScavengeId":"x","members":[5],"startedAt":"${T}"}`],
    ['$cluster-members-changed', '{"added":[]}'],
    ['constructor', '{}'],
  ])('not understood: %s %s', (type, json) => {
    expect(parseFact(type, bytes(json))).toBe(null);
  });
});
