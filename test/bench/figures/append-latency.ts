import { join } from 'node:path';
import { startHttpLoad, startNode, startServer } from '../child.ts';
import { alternate, median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { RawWriter } from '../raw-writer.ts';

const FILE_BYTES = 16_777_216;
const TIMES_MAX = 1.3;

export const appendLatency: Figure = {
  name: 'append-latency',
  how: 'As append-http, but over one connection, so that nothing is shared: half of the appends take no longer. The limit is what half of the round trips to the bare server take, plus half of the writes of one encoded record with one fdatasync, into a file filled with zeros before, by calls that block or calls that do not, whichever takes less.',
  async run(settings) {
    const bare = await startServer(['test/bench/processes/bare-http.ts']);
    const node = await startNode(join(settings.folder, 'append-latency')).catch(async (error: unknown) => {
      await bare.stop();
      throw error;
    });
    const generator = startHttpLoad();
    const writer = new RawWriter(join(settings.folder, 'append-latency-raw'), FILE_BYTES, 1);
    const load = async (port: number): Promise<number> => {
      return (await generator.load({ port, connections: 1, ms: settings.windowMs })).p50Ms;
    };
    const parts: { readonly trip: number; readonly write: number }[] = [];
    const limit = async (): Promise<number> => {
      const part = { trip: await load(bare.port), write: await writer.p50Ms(settings.windowMs) };
      parts.push(part);
      return part.trip + part.write;
    };
    try {
      for (let i = 0; i < 2; i++) {
        await limit();
        await load(node.port);
      }
      parts.length = 0;
      const measured = await alternate(settings.windows, limit, () => load(node.port));
      return [
        row('append latency over HTTP, one connection, p50', 'ms', measured, { kind: 'at most', value: TIMES_MAX }, [
          `a round trip to the bare server ${median(parts.map(({ trip }) => trip)).toFixed(3)} ms, a write with its sync ${median(parts.map(({ write }) => write)).toFixed(3)} ms`,
        ]),
      ];
    } finally {
      writer.close();
      await generator.stop();
      await bare.stop();
      await node.stop();
    }
  },
};
