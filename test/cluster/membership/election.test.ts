import { describe, expect, test } from 'vitest';
import {
  type Candidate,
  Election,
  type ElectionKnowledge,
  majorityOf,
  type OtherCandidate,
  RANK_STEP_MS,
  RANK_WAIT_MAX_MS,
  RESIGNED_WAIT_MS,
} from '../../../core/cluster/membership/election.ts';

const NOW = 100_000;

function self(changes: Partial<Candidate> = {}): Candidate {
  return {
    node: { address: 'b', port: 1 },
    applied: 10,
    priority: 0,
    isReadOnlyReplica: false,
    hearsNone: true,
    canLead: true,
    epochNumber: 3,
    ...changes,
  };
}

function other(address: string, changes: Partial<OtherCandidate> = {}): OtherCandidate {
  return { ...self(), node: { address, port: 1 }, heardFromMs: NOW, ...changes };
}

function knowledge(others: readonly OtherCandidate[], changes: Partial<ElectionKnowledge> = {}): ElectionKnowledge {
  return {
    clusterSize: 3,
    self: self(),
    others,
    epochSinceMs: -Infinity,
    notBeforeMs: -Infinity,
    resignedUntilMs: -Infinity,
    voteMs: 1_000,
    ...changes,
  };
}

function decide(others: readonly OtherCandidate[], changes: Partial<ElectionKnowledge> = {}) {
  return new Election().decide(knowledge(others, changes), NOW);
}

test.each([
  [1, 1],
  [2, 2],
  [3, 2],
  [4, 3],
  [5, 3],
  [7, 4],
])('of %d members %d are a majority', (size, majority) => {
  expect(majorityOf(size)).toBe(majority);
});

describe('who stands', () => {
  test.each<[string, readonly OtherCandidate[], Partial<ElectionKnowledge>, string]>([
    ['alone in a cluster of one', [], { clusterSize: 1 }, 'stand'],
    ['alone in a cluster of three', [], {}, 'minority'],
    ['with one other that hears none', [other('c')], {}, 'stand'],
    ['with one other that hears a leader', [other('c', { hearsNone: false })], {}, 'minority'],
    ['with two of five', [other('c')], { clusterSize: 5 }, 'minority'],
    ['with three of five', [other('c'), other('d')], { clusterSize: 5 }, 'stand'],
    ['a read-only replica is no vote', [other('c', { isReadOnlyReplica: true })], {}, 'minority'],
    [
      'a read-only replica never stands',
      [other('c'), other('d')],
      { self: self({ isReadOnlyReplica: true }) },
      'replica',
    ],
    ['who hears a leader does not', [other('c'), other('d')], { self: self({ hearsNone: false }) }, 'leader'],
    ['who has not caught up does not', [other('c'), other('d')], { self: self({ canLead: false }) }, 'copy'],
    ['one that has not caught up is a vote', [other('c', { canLead: false })], {}, 'stand'],
    ['what was said long ago is no vote', [other('c', { heardFromMs: NOW - 1_001 })], {}, 'minority'],
    [
      'who does not know a new epoch is no vote',
      [other('c', { epochNumber: 2 })],
      { epochSinceMs: NOW - 1_000 },
      'minority',
    ],
    ['but when the epoch is old', [other('c', { epochNumber: 2 })], { epochSinceMs: NOW - 2_001 }, 'stand'],
    ['who knows a newer epoch is no vote for one behind this one', [other('c', { epochNumber: 4 })], {}, 'minority'],
  ])('%s', (_, others, changes, expected) => {
    const decision = decide(others, changes);
    expect(decision.kind === 'none' ? decision.why : decision.kind).toBe(expected);
  });
});

describe('when', () => {
  test.each<[string, readonly OtherCandidate[], Partial<ElectionKnowledge>, number]>([
    ['the best at once', [other('c'), other('d')], {}, 0],
    ['behind one with more of the log', [other('c', { applied: 11 })], {}, RANK_STEP_MS],
    ['before one with less of it and a higher priority', [other('a', { applied: 9, priority: 5 })], {}, 0],
    ['behind one with a higher priority', [other('c', { priority: 1 })], {}, RANK_STEP_MS],
    ['behind one with a lower address', [other('a')], {}, RANK_STEP_MS],
    ['behind two', [other('a'), other('c', { applied: 11 })], {}, 2 * RANK_STEP_MS],
    ['not behind one that can not lead', [other('a', { canLead: false })], {}, 0],
    ['not behind one that is no vote', [other('a', { hearsNone: false }), other('c')], {}, 0],
    ['after what it waits for', [other('c')], { notBeforeMs: NOW + 60_000 }, 60_000],
    ['last, when it has resigned', [other('c')], { resignedUntilMs: NOW + 60_000 }, RESIGNED_WAIT_MS],
    ['as others, when that was a minute ago', [other('c')], { resignedUntilMs: NOW - 1 }, 0],
    ['bounded', Array.from({ length: 30 }, (_, i) => other(`a${i}`)), {}, RANK_WAIT_MAX_MS],
  ])('%s', (_, others, changes, waitMs) => {
    expect(decide(others, changes)).toEqual({ kind: 'stand', atMs: NOW + waitMs });
  });

  test('the wait counts from when the majority was first there, and begins anew when it was gone', () => {
    const election = new Election();
    const at = (nowMs: number, others = [other('a', { heardFromMs: nowMs })]) =>
      election.decide(knowledge(others), nowMs);
    expect(at(NOW)).toEqual({ kind: 'stand', atMs: NOW + RANK_STEP_MS });
    expect(at(NOW + 50)).toEqual({ kind: 'stand', atMs: NOW + RANK_STEP_MS });
    expect(at(NOW + 60, [])).toEqual({ kind: 'none', why: 'minority' });
    expect(at(NOW + 70)).toEqual({ kind: 'stand', atMs: NOW + 70 + RANK_STEP_MS });
  });
});
