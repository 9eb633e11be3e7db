import { crc32, deflateSync, inflateSync } from 'node:zlib';

/** Pictures of pages with a palette: a third of the bytes, and nobody sees that colours which are rare became their neighbours. */

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const COLOURS = 256;
const CHANNELS = 3;
const LENGTH_BYTES = 4;
const NAME_BYTES = 4;
const SUM_BYTES = 4;
/** Of the header: bits of a sample, kind of colours, and compression, filters and interlacing, which are 0. */
const TRUE_COLOUR = '0802000000';
const PALETTE_COLOUR = '0803000000';

/** A PNG as browsers make it, of true colours without transparency, with a palette of its most frequent colours. */
export function withPalette(png: Buffer): Buffer {
  const { width, height, data } = parsed(png);
  const pixels = unfiltered(inflateSync(data), width, height);
  const counts = new Map<number, number>();
  for (let i = 0; i < pixels.length; i += CHANNELS) {
    const colour = pixels.readUIntBE(i, CHANNELS);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = [...counts].sort(([, one], [, other]) => other - one).slice(0, COLOURS).map(([colour]) => colour);
  const indices = new Map([...counts.keys()].map((colour) => [colour, nearest(colour, palette)]));
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) lines[y * (width + 1) + 1 + x] = indices.get(pixels.readUIntBE((y * width + x) * CHANNELS, CHANNELS))!;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header.write(PALETTE_COLOUR, 8, 'hex');
  const colours = Buffer.alloc(palette.length * CHANNELS);
  palette.forEach((colour, i) => colours.writeUIntBE(colour, i * CHANNELS, CHANNELS));
  return Buffer.concat([SIGNATURE, part('IHDR', header), part('PLTE', colours), part('IDAT', deflateSync(lines, { level: 9 })), part('IEND', Buffer.alloc(0))]);
}

function parsed(png: Buffer): { readonly width: number; readonly height: number; readonly data: Buffer } {
  const pieces: Buffer[] = [];
  let header = Buffer.alloc(0);
  for (let at = SIGNATURE.length; at < png.length;) {
    const length = png.readUInt32BE(at);
    const name = png.toString('latin1', at + LENGTH_BYTES, at + LENGTH_BYTES + NAME_BYTES);
    const content = png.subarray(at + LENGTH_BYTES + NAME_BYTES, at + LENGTH_BYTES + NAME_BYTES + length);
    if (name === 'IHDR') header = Buffer.from(content);
    if (name === 'IDAT') pieces.push(content);
    at += LENGTH_BYTES + NAME_BYTES + length + SUM_BYTES;
  }
  if (header.toString('hex', 8) !== TRUE_COLOUR) throw new Error(`The picture is of another kind: ${header.toString('hex')}`);
  return { width: header.readUInt32BE(0), height: header.readUInt32BE(4), data: Buffer.concat(pieces) };
}

/** Each line begins with how its bytes were made of their neighbours on the left and above. */
function unfiltered(lines: Buffer, width: number, height: number): Buffer {
  const stride = width * CHANNELS;
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = lines[y * (stride + 1)]!;
    for (let x = 0; x < stride; x++) {
      const left = x < CHANNELS ? 0 : pixels[y * stride + x - CHANNELS]!;
      const above = y === 0 ? 0 : pixels[(y - 1) * stride + x]!;
      const corner = y === 0 || x < CHANNELS ? 0 : pixels[(y - 1) * stride + x - CHANNELS]!;
      const guess = filter === 0 ? 0 : filter === 1 ? left : filter === 2 ? above : filter === 3 ? (left + above) >> 1 : closest(left, above, corner);
      pixels[y * stride + x] = lines[y * (stride + 1) + 1 + x]! + guess;
    }
  }
  return pixels;
}

/** That of the three neighbours which is nearest to where they lead. */
function closest(left: number, above: number, corner: number): number {
  const guess = left + above - corner;
  const [toLeft, toAbove, toCorner] = [Math.abs(guess - left), Math.abs(guess - above), Math.abs(guess - corner)];
  if (toLeft <= toAbove && toLeft <= toCorner) return left;
  return toAbove <= toCorner ? above : corner;
}

function nearest(colour: number, palette: readonly number[]): number {
  let [found, least] = [0, Number.POSITIVE_INFINITY];
  for (const [i, other] of palette.entries()) {
    const distance = ((colour >> 16) - (other >> 16)) ** 2 + (((colour >> 8) & 255) - ((other >> 8) & 255)) ** 2 + ((colour & 255) - (other & 255)) ** 2;
    if (distance >= least) continue;
    [found, least] = [i, distance];
    if (distance === 0) break;
  }
  return found;
}

function part(name: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), content]);
  const [length, sum] = [Buffer.alloc(LENGTH_BYTES), Buffer.alloc(SUM_BYTES)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
