// Whole, as all that Node.js 20 lacks a name of: a name that is missing fails before any check of the version.
import * as zlib from 'node:zlib';
import { SkuaError } from '../core/base/errors.ts';
import type { Compression } from '../core/ports/compression.ts';

/** zstd by the native code of Node.js. */
export const nodeCompression: Compression = {
  compress: (bytes) => plain(zlib.zstdCompressSync(bytes)),
  decompress(bytes, sizeBytesMax) {
    try {
      return plain(zlib.zstdDecompressSync(bytes, { maxOutputLength: Math.max(1, sizeBytesMax) }));
    } catch (error) {
      throw new SkuaError(
        'io_error',
        `Compressed content is damaged, or holds more than ${sizeBytesMax} bytes.`,
        { limit: sizeBytesMax },
        error,
      );
    }
  },
};

/** A plain Uint8Array of the same bytes: `slice` of a Buffer would not copy. */
function plain(buffer: Uint8Array): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}
