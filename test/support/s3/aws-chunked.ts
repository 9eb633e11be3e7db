import { crc32 } from 'node:zlib';

export interface DecodedBody {
  readonly bytes: Buffer;
  /** Headers that came behind the body, in lower case. */
  readonly trailers: Readonly<Record<string, string>>;
}

/** Decodes the framing `aws-chunked`: `size;extensions CRLF bytes CRLF`, a frame of no bytes, then trailers. */
export function decodeAwsChunked(body: Buffer): DecodedBody {
  const pieces: Buffer[] = [];
  let at = 0;
  for (;;) {
    const end = body.indexOf('\r\n', at);
    if (end < 0) throw new RangeError('The body ends within its framing.');
    const size = Number.parseInt(body.toString('latin1', at, end), 16);
    if (!Number.isInteger(size)) throw new RangeError('A frame has no size.');
    at = end + 2;
    if (size === 0) break;
    if (at + size + 2 > body.length) throw new RangeError('The body ends within a frame.');
    pieces.push(body.subarray(at, at + size));
    at += size + 2;
  }
  const trailers: Record<string, string> = {};
  for (const line of body.toString('latin1', at).split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) trailers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim();
  }
  return { bytes: Buffer.concat(pieces), trailers };
}

/** CRC-32 as S3 writes it: four bytes, the highest first, in base64. */
export function crc32Text(bytes: Uint8Array): string {
  const out = Buffer.alloc(4);
  out.writeUInt32BE(crc32(bytes));
  return out.toString('base64');
}
