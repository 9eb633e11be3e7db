import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The limit of appends over HTTP: node:http reads the body and answers 201. With a secret as argument that of webhooks:
 * it also computes the HMAC of the body, compares it with X-Hub-Signature-256 and answers 202.
 */
const secret = process.argv[2];

function isSigned(body: Buffer, key: string, header: unknown): boolean {
  const expected = Buffer.from(`sha256=${createHmac('sha256', key).update(body).digest('hex')}`);
  const given = Buffer.from(String(header));
  return given.length === expected.length && timingSafeEqual(given, expected);
}

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts);
    const status =
      secret === undefined ? 201 : isSigned(body, secret, request.headers['x-hub-signature-256']) ? 202 : 401;
    response.writeHead(status, { 'content-length': 0, 'x-bytes': body.length });
    response.end();
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
process.on('SIGTERM', () => process.exit(0));
