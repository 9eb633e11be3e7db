import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { startMeasured } from '../measured.ts';

const SUBSCRIBERS = 500;
const SUBSCRIBERS_SMOKE = 10;
/** What each subscriber is due, in batches. */
const BATCHES = 10;
const BATCH_EVENTS = 100;
const EVENT_BYTES = 1_000;
/** 150 MB. */
const LIMIT_MIB = 143;
const LOOK_MS = 50;
/** What is left of an append is done by then. */
const SETTLE_MS = 2_000;
const WARM_SUBSCRIBERS = 10;
const LINE_FEED = 10;
const END = Buffer.from('\n\n');

export const slowSubscribers: Figure = {
  name: 'slow-subscribers',
  how: `${SUBSCRIBERS} server-sent subscriptions of one stream that read all they are sent, and ${SUBSCRIBERS} of the same stream that read nothing. Then ${(BATCHES * BATCH_EVENTS * EVENT_BYTES) / 1_000_000} MB of events are appended to it. Resident size: how far it rises, at most, until all that read have all of it, over that of a node to which ${WARM_SUBSCRIBERS} others have read as much before.`,
  async run(settings) {
    const count = settings.isSmoke ? SUBSCRIBERS_SMOKE : SUBSCRIBERS;
    const node = await startMeasured([
      'local/main.ts',
      'start',
      '--db',
      join(settings.folder, 'slow-subscribers'),
      '--node-port',
      '0',
      '--insecure',
      '--client-stall-timeout',
      '3600',
    ]);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const subscribers = new Subscribers(node.port);
    try {
      for (let i = 0; i < WARM_SUBSCRIBERS; i++) await subscribers.open('warm', true);
      for (let i = 0; i < BATCHES; i++) await append(node.port, agent, 'warm', i);
      for (let i = 0; i < 2 * count; i++) await subscribers.open('due', i < count);
      await sleep(SETTLE_MS);
      const before = await node.usage();
      const due = subscribers.readMessages + count * BATCHES * BATCH_EVENTS;
      for (let i = 0; i < BATCHES; i++) await append(node.port, agent, 'due', BATCHES + i);
      let most = 0;
      const look = async () => {
        most = Math.max(most, (await node.usage()).residentMiB);
        await sleep(LOOK_MS);
      };
      while (subscribers.readMessages < due) await look();
      for (const untilMs = performance.now() + SETTLE_MS; performance.now() < untilMs;) await look();
      const after = await node.usage();
      return [
        row(
          `resident size that ${SUBSCRIBERS} subscribers that read nothing take, beside as many that read`,
          'MiB',
          { limit: [LIMIT_MIB], ours: [most - before.residentMiB] },
          { kind: 'at most', value: 1 },
          [`${Math.round(after.cpuMs - before.cpuMs)} ms of processor time`],
        ),
      ];
    } finally {
      subscribers.close();
      agent.destroy();
      await node.stop();
    }
  },
};

class Subscribers {
  /** Ends of messages that those who read have got. */
  readMessages = 0;
  readonly #port: number;
  readonly #sockets: Socket[] = [];

  constructor(port: number) {
    this.#port = port;
  }

  /** Resolves when the subscription has begun, which shows in its head alone. */
  open(stream: string, reads: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#port, '127.0.0.1', () =>
        socket.write(`GET /streams/${stream}?from=end HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`),
      );
      socket.on('error', reject);
      socket.once('data', () => {
        if (reads) this.#read(socket);
        else socket.pause();
        resolve();
      });
      this.#sockets.push(socket);
    });
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** A message ends with an empty line, through which a piece may be cut. */
  #read(socket: Socket): void {
    let last = 0;
    socket.on('data', (bytes: Buffer) => {
      if (last === LINE_FEED && bytes[0] === LINE_FEED) this.readMessages++;
      for (let at = bytes.indexOf(END); at >= 0; at = bytes.indexOf(END, at + END.length)) this.readMessages++;
      last = bytes.at(-1)!;
    });
  }
}

function append(port: number, agent: Agent, stream: string, batch: number): Promise<void> {
  const events: string[] = [];
  for (let i = 0; i < BATCH_EVENTS; i++)
    events.push(
      `{"eventId":"5c11ab1e-0000-4000-8000-${String(batch * BATCH_EVENTS + i).padStart(12, '0')}","eventType":"Noted","data":{"t":"${'x'.repeat(EVENT_BYTES)}"}}`,
    );
  return new Promise((resolve, reject) => {
    request(
      {
        host: '127.0.0.1',
        port,
        agent,
        method: 'POST',
        path: `/streams/${stream}`,
        headers: { 'content-type': 'application/vnd.eventstore.events+json' },
      },
      (response) => {
        response.resume();
        response.on('end', () =>
          response.statusCode === 201
            ? resolve()
            : reject(new Error(`A batch was answered with ${response.statusCode}.`)),
        );
      },
    )
      .on('error', reject)
      .end(`[${events.join()}]`);
  });
}
