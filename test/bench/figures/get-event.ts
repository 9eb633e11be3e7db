import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { startHttpLoad } from '../child.ts';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { startMeasured } from '../measured.ts';

const CONNECTIONS = 64;
const EVENTS = 500;
const DATA_BYTES = 2_048;
const MICROSECONDS = 60;
const PATH = '/streams/got/250';

export const getEvent: Figure = {
  name: 'get-event',
  how: `One event of ${DATA_BYTES} bytes, asked for again and again by its number as application/json over ${CONNECTIONS} connections. Measured is the processor time that the node takes for a request, with all its threads; the limit is a number.`,
  async run(settings) {
    const folder = join(settings.folder, 'get-event');
    const node = await startMeasured(['local/main.ts', 'start', '--db', folder, '--node-port', '0', '--insecure']);
    const generator = startHttpLoad();
    const load = { port: node.port, connections: CONNECTIONS, ms: settings.windowMs, read: PATH };
    try {
      const text = 'x'.repeat(DATA_BYTES - '{"text":""}'.length);
      const events = Array.from({ length: EVENTS }, () => ({
        eventId: crypto.randomUUID(),
        eventType: 'Noted',
        data: { text },
      }));
      const { status } = await fetch(`http://127.0.0.1:${node.port}/streams/got`, {
        method: 'POST',
        headers: { 'content-type': 'application/vnd.eventstore.events+json' },
        body: JSON.stringify(events),
      });
      if (status !== 201) throw new Error(`The events were answered with ${status}.`);
      await generator.load(load);
      const ours: number[] = [];
      const rates: number[] = [];
      for (let i = 0; i < settings.windows; i++) {
        const before = await node.usage();
        const { requestsPerSecond, firstFailure } = await generator.load(load);
        if (firstFailure !== '') throw new Error(firstFailure);
        const after = await node.usage();
        rates.push(requestsPerSecond);
        ours.push(((after.cpuMs - before.cpuMs) * 1_000) / (requestsPerSecond * (settings.windowMs / 1_000)));
      }
      return [
        row(
          'GET of one event of 2 kB: processor time',
          'µs',
          { limit: [MICROSECONDS], ours },
          { kind: 'at most', value: 1 },
          [`${rates.map(Math.round).join(', ')} requests/s`],
        ),
      ];
    } finally {
      await generator.stop();
      await node.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
