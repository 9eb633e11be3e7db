import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * Below the ports that systems give out by themselves (from 32 768 on). One of those, while nobody listens on it, may
 * become the near end of anybody's connection, even of one to this very port; who is to listen there then can't.
 */
const FIRST = 12_000;
const END = 32_000;

/**
 * Ports of this machine that were free a moment ago, for who has to know its port before it listens, or to come back to
 * it.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(FIRST, END);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
