import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const SCRIPT = new URL('hostile.mjs', import.meta.url);
const PAGE =
  '<!doctype html><title>Somebody else</title><body><script type="module">import * as hostile from "/hostile.mjs"; window.hostile = hostile;</script>';
/** It puts a cookie of the node's name beside the node's own, more exactly placed, so that browsers send it first. */
const COOKIES: readonly string[] = [
  'skua-session=planted; Path=/ui; HttpOnly',
  'skua-session=planted; Path=/streams',
  '__Host-skua-session=planted; Path=/',
];

/** A server of somebody else on this machine: other names and other ports of it are other origins. */
export class ForeignSite {
  readonly #server: Server;
  readonly port: number;

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  static async start(): Promise<ForeignSite> {
    const script = await readFile(SCRIPT);
    const server = createServer(({ url = '/' }, reply) => {
      const { pathname, searchParams } = new URL(url, 'http://foreign.test');
      if (pathname === '/hostile.mjs') reply.writeHead(200, { 'content-type': 'text/javascript' }).end(script);
      // Method and body go on to where it leads.
      else if (pathname === '/redirect') reply.writeHead(307, { location: searchParams.get('to')! }).end();
      else if (pathname === '/cookies')
        reply.writeHead(200, { 'content-type': 'text/html', 'set-cookie': [...COOKIES] }).end(PAGE);
      else reply.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    return new ForeignSite(server);
  }

  origin(host: string): string {
    return `http://${host}:${this.port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}
