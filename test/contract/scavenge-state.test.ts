import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemoryScavengeStates } from '../../core/memory/memory-scavenge-state.ts';
import { SqliteScavengeStates } from '../../infra/sqlite/scavenge-states.ts';
import { describeScavengeState, firstCharHasher } from './scavenge-state.contract.ts';

describeScavengeState('memory', async () => ({ states: new MemoryScavengeStates(), dispose: async () => {} }));
describeScavengeState('SQLite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skua-state-'));
  return {
    states: new SqliteScavengeStates({ indexRoot: folder, hasher: firstCharHasher }),
    dispose: () => rm(folder, { recursive: true, force: true }),
  };
});
