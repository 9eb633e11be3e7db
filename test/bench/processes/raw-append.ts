import { createInterface } from 'node:readline';
import { RawWriter } from '../raw-writer.ts';

/**
 * The least that durable appends can take, in a process of its own: a writer by hand, whose file is the first argument,
 * with so many records a group as the second says. Each line asks for a window of so many milliseconds.
 */
export interface RawAppendRequest {
  readonly ms: number;
}
export interface RawAppendResult {
  readonly records: number;
  /** Processor time of all threads. */
  readonly cpuMs: number;
}

const FILE_BYTES = 67_108_864;

const [path, records] = process.argv.slice(2);
const writer = new RawWriter(path!, FILE_BYTES, Number(records));
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(
    `${JSON.stringify(writer.encoding((JSON.parse(line) as RawAppendRequest).ms) satisfies RawAppendResult)}\n`,
  );
writer.close();
