import { expect, test } from 'vitest';
import { nodeDigests } from '../../infra/node-digests.ts';
import { DigestLane, LANE_BYTES_MIN } from '../../infra/jobs/digest-lane.ts';
import { Random } from '../support/random.ts';

const WORKER = new URL('../../infra/jobs/job-worker.ts', import.meta.url);

function randomBytes(random: Random, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random.int(0, 255));
}

test('digests that are taken by another thread, several at a time, are those of the bytes as they were when they were given', () => {
  const lane = new DigestLane(WORKER, false);
  const digests = lane.over(nodeDigests);
  const random = new Random(7);
  const pairs = Array.from({ length: 3 }, () => ({ ours: digests.md5(LANE_BYTES_MIN), theirs: nodeDigests.md5() }));
  const left = digests.md5(LANE_BYTES_MIN);
  const source = randomBytes(random, 700_000);
  // More than fits into the ring, in pieces of any size, empty ones too.
  for (let i = 0; i < 60; i++) {
    const piece = source.slice(0, random.int(0, source.length));
    const { ours, theirs } = pairs[random.int(0, pairs.length - 1)]!;
    theirs.update(piece);
    ours.update(piece);
    left.update(piece);
    piece.fill(0);
  }
  for (const { ours, theirs } of pairs) expect(ours.finish()).toEqual(theirs.finish());
  // What was given up does not get into what comes after it.
  lane.clear();
  for (let i = 0; i < pairs.length; i++) digests.md5(LANE_BYTES_MIN);
  const next = digests.md5(LANE_BYTES_MIN);
  next.update(source);
  const expected = nodeDigests.md5();
  expected.update(source);
  expect(next.finish()).toEqual(expected.finish());
  expect(digests.md5(LANE_BYTES_MIN).finish()).toEqual(nodeDigests.md5().finish());
});

test('a thread that was called ahead is there when a digest is begun at once, and none is called for short ones', () => {
  const digests = new DigestLane(WORKER, false).over(nodeDigests);
  digests.prepare!(LANE_BYTES_MIN - 1);
  digests.prepare!(LANE_BYTES_MIN);
  digests.prepare!(LANE_BYTES_MIN);
  const bytes = randomBytes(new Random(8), 300_000);
  const [ours, expected] = [digests.md5(LANE_BYTES_MIN), nodeDigests.md5()];
  ours.update(bytes);
  expected.update(bytes);
  expect(ours.finish()).toEqual(expected.finish());
});

test('short digests, and all where no thread comes, are taken by the caller', () => {
  const digests = new DigestLane(new URL('./absent.mjs', import.meta.url), false, 50).over(nodeDigests);
  for (const expectedBytes of [undefined, LANE_BYTES_MIN - 1, LANE_BYTES_MIN, LANE_BYTES_MIN]) {
    const digest = digests.md5(expectedBytes);
    digest.update(new Uint8Array([1, 2, 3]));
    const expected = nodeDigests.md5();
    expected.update(new Uint8Array([1, 2, 3]));
    expect(digest.finish()).toEqual(expected.finish());
  }
});

test('an MD5 behind its caller is there as soon as its thread is, takes pieces of any size, and fails when the thread has ended', async () => {
  const lane = new DigestLane(WORKER, false);
  const random = new Random(9);
  let ours = lane.behind();
  for (; ours === null; ours = lane.behind())
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  const expected = nodeDigests.md5();
  for (const length of [0, 1, 300, 262_143, 262_144, 1_000_000, 17]) {
    const piece = randomBytes(random, length);
    ours.update(piece);
    expected.update(piece);
    piece.fill(0);
  }
  expect(ours.finish()).toEqual(expected.finish());
  const left = lane.behind()!;
  await lane.close();
  expect(lane.behind()).toBeNull();
  expect(() => left.finish()).toThrow('thread that takes checksums');
});
