import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The limit of appends over HTTP: node:http reads the body and answers 201. */
const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts);
    response.writeHead(201, { 'content-length': 0, 'x-bytes': body.length });
    response.end();
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
process.on('SIGTERM', () => process.exit(0));
