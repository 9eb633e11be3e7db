import { once } from 'node:events';
import { NODE_FLAGS, startServer } from './child.ts';
import type { Server } from './child.ts';
import type { Usage } from './processes/usage-channel.ts';

/** A server that says what it has taken: processor time of all its threads, and resident size. */
export interface MeasuredServer extends Server {
  /** `isCollected`: its heap is collected before, which takes processor time. */
  usage(isCollected?: boolean): Promise<Usage>;
}

const CHANNEL: readonly string[] = ['--expose-gc', '--import', './test/bench/processes/usage-channel.ts'];

export async function startMeasured(args: readonly string[]): Promise<MeasuredServer> {
  const server = await startServer([...NODE_FLAGS, ...CHANNEL, ...args], true);
  return {
    ...server,
    async usage(isCollected = false) {
      server.process.send(isCollected ? 'collected' : 'now');
      const [usage] = (await once(server.process, 'message')) as [Usage];
      return usage;
    },
  };
}
