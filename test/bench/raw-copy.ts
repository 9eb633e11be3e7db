import { createHash } from 'node:crypto';
import { closeSync, fdatasyncSync, fstatSync, fsyncSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

const BLOCK_BYTES = 1_048_576;

/**
 * The limit of rewriting files: every byte is read in blocks of 1 MiB, goes into an MD5, is written, and the copy is
 * synced once. Gives seconds. Without the MD5 it is a plain copy with fsync.
 */
export function copyWithDigest(sources: readonly string[], target: string, withDigest = true): number {
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  const begin = performance.now();
  for (const source of sources) {
    const from = openSync(source, 'r');
    const to = openSync(target, 'w');
    const md5 = createHash('md5');
    const { size } = fstatSync(from);
    for (let at = 0; at < size;) {
      const got = readSync(from, block, 0, BLOCK_BYTES, at);
      const bytes = block.subarray(0, got);
      if (withDigest) md5.update(bytes);
      writeSync(to, bytes, 0, got, at);
      at += got;
    }
    if (withDigest) {
      md5.digest();
      fdatasyncSync(to);
    } else fsyncSync(to);
    closeSync(from);
    closeSync(to);
    unlinkSync(target);
  }
  return (performance.now() - begin) / 1000;
}

/**
 * The limit of a scavenge that removes half and merges: every byte is read once in blocks of 1 MiB and goes into an
 * MD5, every second block is written once, into files of at most `fileBytes`, each of which is synced once. Gives
 * seconds.
 */
export function copyHalf(sources: readonly string[], target: string, fileBytes: number): number {
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  const begin = performance.now();
  const done: string[] = [];
  let to = -1;
  let written = 0;
  const end = (): void => {
    if (to < 0) return;
    fdatasyncSync(to);
    closeSync(to);
    to = -1;
  };
  let blocks = 0;
  for (const source of sources) {
    const from = openSync(source, 'r');
    const md5 = createHash('md5');
    const { size } = fstatSync(from);
    for (let at = 0; at < size; blocks++) {
      const got = readSync(from, block, 0, BLOCK_BYTES, at);
      at += got;
      const bytes = block.subarray(0, got);
      md5.update(bytes);
      if (blocks % 2 === 1) continue;
      if (to < 0 || written + got > fileBytes) {
        end();
        done.push(`${target}-${done.length}`);
        to = openSync(done.at(-1)!, 'w');
        written = 0;
      }
      writeSync(to, bytes, 0, got, written);
      written += got;
    }
    md5.digest();
    closeSync(from);
  }
  end();
  const seconds = (performance.now() - begin) / 1000;
  for (const file of done) unlinkSync(file);
  return seconds;
}
