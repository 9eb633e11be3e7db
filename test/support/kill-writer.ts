import { writeSync } from 'node:fs';
import { guidFromUuidBytes, guidToText } from '../../core/base/guid.ts';
import { ANY } from '../../core/streams/api.ts';
import type { NewEvent } from '../../core/streams/api.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { Random } from './random.ts';
import { openTestStore } from './test-store.ts';
import { randomUuid } from './workload.ts';

/**
 * A process that writes under load until it is killed: `node kill-writer.ts FOLDER SEED CLIENTS`. Before each append it
 * says `b STREAM IDS`, after its acknowledgement `a FIRST LAST POSITION ID`, each line with one system call, so that
 * whatever was acknowledged has been said before the process can die.
 */

/** Content of an event, which follows from its id, so that the judge can tell it. */
export function killEvent(id: string): NewEvent {
  const size = Number.parseInt(id.slice(0, 3), 16);
  return {
    id,
    type: `kill-${id[0]}`,
    isJson: false,
    data: new Uint8Array(size).fill(Number.parseInt(id.slice(3, 5), 16)),
    metadata: new Uint8Array(size % 7),
  };
}

function say(line: string): void {
  const bytes = Buffer.from(`${line}\n`);
  for (let done = 0; done < bytes.length;) {
    try {
      done += writeSync(1, bytes, done);
    } catch (error) {
      // The pipe is full: its reader is slower than we are.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    }
  }
}

async function main(folder: string, seed: number, clients: number): Promise<void> {
  const storage = new FilesystemStorage({ root: folder });
  const { store } = await openTestStore({
    storage,
    clock: systemClock,
    seed,
    chunkSizeBytes: 262_144,
    memTableEntriesMax: 500,
  });
  say('open');
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      const random = new Random(seed * 1000 + client);
      for (;;) {
        const stream = random.chance(0.3) ? 'kill-shared' : `kill-${client}`;
        const events = Array.from({ length: random.chance(0.6) ? 1 : random.int(2, 12) }, () =>
          killEvent(guidToText(guidFromUuidBytes(randomUuid(random)), 0)),
        );
        say(`b ${stream} ${events.map((event) => event.id).join()}`);
        const result = await store.append(stream, ANY, events);
        say(`a ${result.firstEventNumber} ${result.lastEventNumber} ${result.position} ${events[0]!.id}`);
      }
    }),
  );
}

if (process.argv[1] === import.meta.filename) {
  const [folder, seed, clients] = process.argv.slice(2);
  await main(folder!, Number(seed), Number(clients));
}
