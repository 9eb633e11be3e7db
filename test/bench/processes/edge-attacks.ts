import { Agent, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { StreamsService } from '../../../handlers/grpc/messages/streams.ts';

/**
 * Whoever attacks a node: one attack at a time, for as long as is asked, with as much under way at once as is asked;
 * whatever ends is begun again.
 */
export interface AttackRequest {
  readonly port: number;
  readonly attack: AttackName;
  readonly inFlight: number;
  readonly ms: number;
  /** Value of `Authorization`; null for a stranger. */
  readonly authorization: string | null;
}
export interface AttackResult {
  /**
   * How often what was begun ended in which way: a status of HTTP or gRPC, a connection that was closed, an error of
   * the socket.
   */
  readonly endings: Readonly<Record<string, number>>;
  /** Share of one core that this process took. */
  readonly cpu: number;
}
export type AttackName = keyof typeof ATTACKS;

const HOST = '127.0.0.1';
/**
 * Limits by address are the attacker's own: another than that of who is measured, where the whole of 127/8 is the
 * machine.
 */
const FROM = process.platform === 'linux' ? '127.0.0.2' : HOST;
/** As many calls as a node lets a connection have. */
const CALLS_PER_CONNECTION = 128;
/**
 * What the client's library may keep for one connection, in megabytes: messages that the node does not take wait here.
 */
const SESSION_MEGABYTES = 1_000;
/** A connection that the node leaves open is reset after so long, and another one comes. */
const LEFT_OPEN_MS = 1_000;
/** A known caller whose call is refused comes back after so long: its calls are to stay, and not to come and go. */
const COME_BACK_MS = 1_000;

const { Append, BatchAppend } = StreamsService.methods;
const EVENTS = 'application/vnd.eventstore.events+json';

/** An attack that goes on. */
interface Run extends AttackRequest {
  readonly isOver: boolean;
  count(ending: string, by?: number): void;
  /** What is destroyed when the time is over. */
  readonly open: Set<{ destroy(): void }>;
}

const ATTACKS = {
  /** Each connection sends 58 kB of requests as fast as the node takes them, and reads what comes. */
  documents: (run: Run) =>
    again(run, () =>
      connection(run, (socket) => {
        const send = (): void => {
          socket.write(DOCUMENTS);
        };
        socket.on('drain', send);
        socket.on('close', () => run.count('kB read', Math.round(socket.bytesRead / 1_000)));
        send();
      }),
    ),
  'silent calls': (run: Run) => calls(run, BatchAppend.path, () => {}),
  beginnings: (run: Run) =>
    calls(run, Append.path, (stream) => {
      stream.write(BEGINNING);
    }),
  'broken frames': (run: Run) =>
    again(run, () =>
      connection(
        run,
        (socket) => {
          socket.write(BROKEN_FRAMES);
        },
        LEFT_OPEN_MS,
      ),
    ),
  upgrades: (run: Run) =>
    again(run, () =>
      connection(
        run,
        (socket) => {
          socket.write(UPGRADE);
        },
        LEFT_OPEN_MS,
      ),
    ),
  resets: (run: Run) =>
    again(run, () =>
      connection(run, (socket) => {
        socket.resetAndDestroy();
      }),
    ),
  'empty records': (run: Run) =>
    calls(run, BatchAppend.path, (stream) => {
      stream.end(EMPTY_RECORDS);
    }),
  'deep batches': (run: Run) => {
    const body = Buffer.from(`[${event(0, DEEP)}]`);
    return requests(run, () => ({ method: 'POST', path: `/streams/attack-deep-${next++}`, type: EVENTS, body }));
  },
  'deep events': async (run: Run) => {
    await ask(run, agentOf(run), {
      method: 'POST',
      path: '/streams/attack-stored',
      type: EVENTS,
      body: Buffer.from(`[${event(0, DEEP)}]`),
    });
    await requests(run, () => ({ method: 'GET', path: '/streams/attack-stored/0', accept: 'application/json' }));
  },
  uploads: (run: Run) => {
    uploads ??= Buffer.from(
      `[${Array.from({ length: UPLOAD_BYTES / (event(0, SMALL).length + 1) }, (_, n) => event(n, SMALL)).join(',')}]`,
    );
    const body = uploads;
    return requests(run, () => ({ method: 'POST', path: `/streams/attack-upload-${next++}`, type: EVENTS, body }));
  },
};

const DOCUMENTS = 'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_487);
const UPGRADE =
  'GET /ping HTTP/1.1\r\nHost: a\r\n\r\nGET /ping HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
/**
 * The preface of HTTP/2, SETTINGS, HEADERS of `GET /ping`, and WINDOW_UPDATE of 0x7fffffff of the connection (RFC 9113
 * section 6, RFC 7541 section 6).
 */
const BROKEN_FRAMES = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1'),
  Buffer.from('000000040000000000', 'hex'),
  Buffer.from('00000c010500000001', 'hex'),
  Buffer.of(0x82, 0x86, 4, 5),
  Buffer.from('/ping'),
  Buffer.of(1, 1),
  Buffer.from('a'),
  Buffer.from('000004080000000000', 'hex'),
  Buffer.of(0x7f, 0xff, 0xff, 0xff),
]);
/** A message of 700 kB but for its last byte. */
const BEGINNING = framed(Buffer.alloc(700_000)).subarray(0, -1);
/** 524 000 records (field 3) of no bytes. */
const EMPTY_RECORDS = framed(Buffer.from('1a00'.repeat(524_000), 'hex'));
/** 3.8 MB of numbers under 60 arrays, each of which becomes a line of 120 blanks where it is indented. */
const DEEP = '['.repeat(60) + Array(1_900_000).fill('1').join(',') + ']'.repeat(60);
const SMALL = '{"n":1}';
const UPLOAD_BYTES = 29_000_000;
let uploads: Buffer | undefined;
/** Of streams that are new. */
let next = 0;

function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function event(n: number, data: string): string {
  return `{"eventId":"00000000-0000-4000-8000-${String(n).padStart(12, '0')}","eventType":"t","data":${data}}`;
}

/** As many at a time as are asked for. */
async function again(run: Run, once: () => Promise<void>, inFlight = run.inFlight): Promise<void> {
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (!run.isOver) await once();
    }),
  );
}

/** One connection, until it is closed. */
function connection(run: Run, begin: (socket: Socket) => void, msMax?: number): Promise<void> {
  return new Promise((resolve) => {
    let ending = 'closed';
    const socket = connect({ port: run.port, host: HOST, localAddress: FROM }, () => begin(socket));
    const timer =
      msMax === undefined
        ? undefined
        : setTimeout(() => {
            ending = 'left open';
            socket.resetAndDestroy();
          }, msMax);
    run.open.add(socket);
    socket.on('error', (error: NodeJS.ErrnoException) => {
      ending = error.code ?? error.message;
    });
    socket.on('close', () => {
      clearTimeout(timer);
      run.open.delete(socket);
      if (!run.isOver) run.count(ending);
      resolve();
    });
    socket.resume();
  });
}

/** Calls of one method, over as many connections as it takes. */
async function calls(run: Run, path: string, begin: (stream: ClientHttp2Stream) => void): Promise<void> {
  const connections = Math.ceil(run.inFlight / CALLS_PER_CONNECTION);
  await again(
    run,
    async () => {
      const session = connectHttp2(`http://${HOST}:${run.port}`, {
        localAddress: FROM,
        maxSessionMemory: SESSION_MEGABYTES,
      } as object);
      const closed = new Promise<void>((resolve) => {
        session.on('close', resolve);
      });
      session.on('error', (error: NodeJS.ErrnoException) => run.count(error.code ?? error.message));
      run.open.add(session);
      const count = Math.ceil(run.inFlight / connections);
      await Promise.all(
        Array.from({ length: count }, async () => {
          while (!run.isOver && !session.closed && !session.destroyed) await call(run, session, path, begin);
        }),
      );
      session.destroy();
      await closed;
      run.open.delete(session);
    },
    connections,
  );
}

async function call(
  run: Run,
  session: ClientHttp2Session,
  path: string,
  begin: (stream: ClientHttp2Stream) => void,
): Promise<void> {
  const login = run.authorization === null ? {} : { authorization: run.authorization };
  const stream = session.request(
    { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', ...login },
    { endStream: false },
  );
  let ending = 'no status';
  for (const event of ['response', 'trailers'] as const)
    stream.on(event, (headers: Record<string, unknown>) => {
      ending = `gRPC ${String(headers['grpc-status'] ?? headers[':status'] ?? 'without status')}`;
    });
  stream.on('error', () => {});
  stream.resume();
  begin(stream);
  await new Promise<void>((resolve) => {
    stream.on('close', resolve);
  });
  if (run.isOver) return;
  run.count(ending);
  if (run.authorization !== null && ending === 'gRPC 14')
    await new Promise((resolve) => {
      setTimeout(resolve, COME_BACK_MS);
    });
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly type?: string;
  readonly accept?: string;
  readonly body?: Buffer;
}

function agentOf(run: Run): Agent {
  const agent = new Agent({ keepAlive: true, localAddress: FROM } as object);
  run.open.add(agent);
  return agent;
}

function requests(run: Run, made: () => Asked): Promise<void> {
  const agent = agentOf(run);
  return again(run, () => ask(run, agent, made()));
}

function ask(run: Run, agent: Agent, { method, path, type, accept, body }: Asked): Promise<void> {
  return new Promise((resolve) => {
    const headers = {
      ...(type !== undefined && { 'content-type': type }),
      ...(accept !== undefined && { accept }),
      ...(body !== undefined && { 'content-length': body.length }),
      ...(run.authorization !== null && { authorization: run.authorization }),
    };
    let ending = 'closed';
    const sent = request({ host: HOST, port: run.port, agent, method, path, headers }, (reply) => {
      ending = String(reply.statusCode);
      reply.on('error', () => {}).resume();
    });
    run.open.add(sent);
    sent.on('error', (error: NodeJS.ErrnoException) => {
      ending = error.code ?? error.message;
    });
    sent.on('close', () => {
      run.open.delete(sent);
      if (!run.isOver) run.count(ending);
      resolve();
    });
    sent.end(body);
  });
}

async function attack(request: AttackRequest): Promise<AttackResult> {
  const endings: Record<string, number> = {};
  const run = {
    ...request,
    isOver: false,
    open: new Set<{ destroy(): void }>(),
    count: (ending: string, by = 1) => {
      endings[ending] = (endings[ending] ?? 0) + by;
    },
  };
  const cpu = process.cpuUsage();
  const begin = performance.now();
  const going = ATTACKS[request.attack](run);
  await new Promise((resolve) => {
    setTimeout(resolve, request.ms);
  });
  run.isOver = true;
  for (const one of run.open) one.destroy();
  const elapsedMs = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  await going;
  return { endings, cpu: (user + system) / 1_000 / elapsedMs };
}

if (import.meta.main) {
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await attack(JSON.parse(line) as AttackRequest))}\n`);
  process.exit(0);
}
