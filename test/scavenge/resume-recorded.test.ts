import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Log } from '../../core/ports/log.ts';
import { silentLog } from '../../core/ports/log.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { installFolder, unpackSet } from '../support/fixtures.ts';
import { openTestStore } from '../support/test-store.ts';

/** That it ends as the reference did is tested with the other recorded scavenges; here, that nothing is done twice. */
test('the scavenge that the reference left unfinished goes on behind its last chunk, from its own database', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skua-resume-'));
  try {
    installFolder(folder, unpackSet('mid-2-interrupted'));
    const storage = new FilesystemStorage({ root: folder });
    const messages: string[] = [];
    const log: Log = {
      ...silentLog,
      info: (message) => {
        messages.push(message);
      },
    };
    const scavengeStates = new SqliteScavengeStates({ indexRoot: storage.indexRoot });
    const open = await openTestStore({
      storage,
      scavengeStates,
      log,
      writeEpoch: false,
      verifyChunks: false,
      scavenge: { keepsDeletedData: true },
    });
    await open.scavenger.start({ threshold: 50, syncOnly: true });
    await open.scavenger.idle();
    expect(open.scavenger.last()).toMatchObject({ result: 'Success', error: null });
    await open.close();
    const of = (text: string) => messages.filter((message) => message.includes(text));
    expect(of('Resuming at ExecutingChunks for SP-0.')).toHaveLength(1);
    expect(of('Phase started: ')).toEqual(
      ['Chunk execution', 'Chunk merging', 'Index execution', 'Cleaning'].map(
        (phase) => `SCAVENGING: Phase started: ${phase}.`,
      ),
    );
    const numbers = [...of('Started to scavenge'), ...of('Skipped physical chunk')].map((message) =>
      Number(/"#(\d+)-/.exec(message)![1]),
    );
    expect(Math.min(...numbers)).toBe(52);
    const state = scavengeStates.open({ pageSizeBytes: 16_384, cacheBytes: 1_048_576, hashUsersCacheEntries: 1_000 });
    expect(state.checkpoint()).toMatchObject({ stage: 'Done', point: { eventNumber: 0 } });
    state.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
