import type { ClientHttp2Session } from 'node:http2';
import * as net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { GrpcTransport } from '../../../handlers/grpc/call.ts';
import { loadCertificates } from '../../../local/tls/load-certificates.ts';
import { issueNode, issueRoot } from '../../support/certificates.ts';
import { Random } from '../../support/random.ts';
import { Files } from '../tls/files.ts';
import { connect, PATH, serveGrpc } from './clients.ts';

/**
 * Blocks lie in memory that is used again. Here every byte of each says of which call and block it is, and callers that
 * read slowly, reset, or are gone look at all that comes.
 */

const CALLS = 140;
const CONNECTIONS = 10;
/** Bytes of a block that have its length and its number, little-endian, behind those of the prefix. */
const HEAD_BYTES = 8;
const PREFIX_BYTES = 5;

/** What stands at a place of a block. Neighbours, blocks and calls differ. */
const byteAt = (call: number, block: number, at: number) => (call * 37 + block * 101 + at * 7 + (at >>> 8)) & 0xff;

function fill(block: Uint8Array, call: number, number: number): void {
  const view = new DataView(block.buffer, block.byteOffset, block.length);
  view.setUint8(0, 0);
  view.setUint32(1, block.length - PREFIX_BYTES);
  view.setUint32(PREFIX_BYTES, call);
  view.setUint32(PREFIX_BYTES + 4, number);
  for (let at = PREFIX_BYTES + HEAD_BYTES; at < block.length; at++) block[at] = byteAt(call, number, at);
}

/** What one call gets, looked at as it comes. */
class Looker {
  readonly #call: number;
  readonly #head = new Uint8Array(PREFIX_BYTES + HEAD_BYTES);
  #at = 0;
  #length = 0;
  blocks = 0;
  wrong: string | null = null;

  constructor(call: number) {
    this.#call = call;
  }

  take(piece: Uint8Array): void {
    for (const byte of piece) {
      if (this.wrong !== null) return;
      if (this.#at < this.#head.length) {
        this.#head[this.#at] = byte;
        if (this.#at === this.#head.length - 1) this.#begin();
      } else if (byte !== byteAt(this.#call, this.blocks, this.#at)) {
        this.wrong = `byte ${this.#at} of block ${this.blocks} is ${byte}`;
      }
      if (++this.#at < this.#head.length || this.#at < this.#length) continue;
      this.#at = 0;
      this.blocks++;
    }
  }

  #begin(): void {
    const view = new DataView(this.#head.buffer);
    this.#length = view.getUint32(1) + PREFIX_BYTES;
    const [call, block] = [view.getUint32(PREFIX_BYTES), view.getUint32(PREFIX_BYTES + 4)];
    if (view.getUint8(0) !== 0 || call !== this.#call || block !== this.blocks)
      this.wrong = `block ${block} of call ${call} came where block ${this.blocks} of ${this.#call} was due`;
  }
}

/** Sends blocks as they come to a reader of pages, and some without waiting for those before. */
function sender(seed: number, seen: { reused: number; foreign: number }) {
  const owners = new WeakMap<ArrayBufferLike, number>();
  return async (call: GrpcTransport): Promise<void> => {
    const id = Number(call.path.slice(PATH.length));
    const random = new Random(seed * 1_000 + id);
    const usual = random.pick([17_000, 30_000, 90_000, 200_000, 300_000]);
    for (let number = 0, end = random.int(4, 14); number < end && !call.request.signal.aborted; number++) {
      const bytes = random.chance(0.2) ? random.int(20, 600_000) : usual + random.int(0, usual >> 3);
      const block = call.memory(bytes);
      const owner = owners.get(block.buffer);
      if (owner !== undefined) seen.reused++;
      if (owner !== undefined && owner !== id) seen.foreign++;
      owners.set(block.buffer, id);
      fill(block, id, number);
      const taken = call.send(block);
      if (taken !== null && random.chance(0.8)) await taken;
      if (random.chance(0.2)) await new Promise((resolve) => void setImmediate(resolve));
    }
  };
}

/** One call, which is read to its end, slowly, or is left: what was wrong of it, and whether all of it came. */
function read(session: ClientHttp2Session, id: number, random: Random): Promise<Looker> {
  const looker = new Looker(id);
  const stream = session.request({
    ':method': 'POST',
    ':path': `${PATH}${id}`,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  const [isSlow, leavesAt] = [random.chance(0.4), random.chance(0.3) ? random.int(1, 1_500_000) : Infinity];
  let bytes = 0;
  stream.on('error', () => {});
  stream.on('data', (piece: Buffer) => {
    looker.take(piece);
    bytes += piece.length;
    if (bytes >= leavesAt && !stream.destroyed) {
      if (random.chance(0.7)) stream.close(random.pick([0, 2, 8]));
      else session.destroy();
    } else if (isSlow && random.chance(0.3)) {
      stream.pause();
      let turns = random.int(1, 20);
      const go = (): void => void (--turns > 0 ? setImmediate(go) : stream.resume());
      go();
    }
  });
  stream.end();
  return new Promise((resolve) => {
    stream.on('close', () => resolve(looker));
  });
}

/** A connection whose bytes come in bits, and stand still in between. */
function lame(random: Random): (port: number) => net.Socket {
  return (port) => {
    const socket = net.connect(port, '127.0.0.1');
    const stall = (): void => {
      if (socket.destroyed) return;
      socket.pause();
      let turns = random.int(1, 30);
      const go = (): void => {
        if (--turns > 0) setImmediate(go);
        else socket.resume();
      };
      go();
    };
    socket.on('data', () => {
      if (random.chance(0.1)) stall();
    });
    return socket;
  };
}

async function certificates() {
  const root = await issueRoot();
  const node = await issueNode(root);
  const files = await Files.of({ 'node.crt': node.cert, 'node.key': node.key, 'roots/ca.crt': root.cert });
  return {
    ca: root.cert,
    loaded: await loadCertificates(files.options({ certificateReservedNodeCommonName: null }), Date.now()),
  };
}

describe('memory of blocks that is used again', () => {
  test.each([
    [1, 'plain'],
    [2, 'plain'],
    [3, 'TLS'],
    [4, 'TLS'],
  ])('shows no caller a byte but its own, seed %i over %s', async (seed, kind) => {
    const random = new Random(seed);
    const seen = { reused: 0, foreign: 0 };
    const tls = kind === 'TLS' ? await certificates() : null;
    const server = await serveGrpc(sender(seed, seen), tls === null ? {} : { tls: { certificates: tls.loaded } });
    const open = (): ClientHttp2Session =>
      connect(server, {
        ...(tls !== null && { ca: tls.ca }),
        settings: { initialWindowSize: random.pick([1_000, 20_000, 65_535, 1_000_000]) },
        ...(tls === null && random.chance(0.5) && { createConnection: () => lame(random)(server.port) }),
      });
    const sessions = Array.from({ length: CONNECTIONS }, open);
    onTestFinished(() => sessions.forEach((session) => session.destroy()));
    const ids = Array.from({ length: CALLS }, (_, id) => id);
    const lookers: Looker[] = [];
    // So many at once, and another when one has ended.
    await Promise.all(
      Array.from({ length: 28 }, async () => {
        for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
          const at = random.int(0, CONNECTIONS - 1);
          if (sessions[at]!.destroyed || sessions[at]!.closed) sessions[at] = open();
          lookers.push(await read(sessions[at]!, id, random));
        }
      }),
    );
    expect(lookers.map(({ wrong }) => wrong).filter((wrong) => wrong !== null)).toEqual([]);
    expect(seen.foreign).toBe(0);
    expect(seen.reused).toBeGreaterThan(100);
    expect(lookers.filter(({ blocks }) => blocks >= 4).length).toBeGreaterThan(CALLS / 3);
  });
});
