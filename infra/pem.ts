import { X509Certificate } from 'node:crypto';

const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

/**
 * The certificates of a file, at most `countMax`: PEM blocks, other blocks between them left out, or one certificate as
 * DER. Errors: one whose message says what is wrong with the file.
 */
export function certificatesIn(bytes: Buffer, countMax: number): X509Certificate[] {
  const text = bytes.toString('latin1');
  if (!text.includes(BEGIN)) {
    if (text.includes('-----BEGIN ')) throw new Error('The file is PEM, but there is no certificate in it.');
    return [parse(bytes, 'The file holds no certificate, neither as PEM nor as DER.')];
  }
  return text
    .split(BEGIN, countMax + 1)
    .slice(1)
    .map((block, i) => {
      const end = block.indexOf(END);
      if (end < 0) throw new Error(`Certificate ${i + 1} in the file has no end marker.`);
      return parse(BEGIN + block.slice(0, end) + END, `Certificate ${i + 1} in the file cannot be read.`);
    });
}

function parse(source: Buffer | string, reason: string): X509Certificate {
  try {
    return new X509Certificate(source);
  } catch {
    throw new Error(reason);
  }
}
