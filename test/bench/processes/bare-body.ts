import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The limit of answers over HTTP: sends the bytes of the file that is named as argument, from memory, in pieces as a
 * node does.
 */
const PIECE_BYTES = 65_536;
const body = readFileSync(process.argv[2]!);

const server = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  let at = 0;
  const send = (): void => {
    while (at < body.length) {
      const piece = body.subarray(at, at + PIECE_BYTES);
      at += piece.length;
      if (!response.write(piece)) {
        response.once('drain', send);
        return;
      }
    }
    response.end();
  };
  send();
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
process.on('SIGTERM', () => process.exit(0));
