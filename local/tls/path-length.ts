import type { X509Certificate } from 'node:crypto';

export type PathLengthOf = (certificate: X509Certificate) => number | null;

/** How many intermediates an authority allows below it: the one thing that Node.js does not tell of a certificate. */
export async function pathLengthReader(): Promise<PathLengthOf> {
  // Loaded here only, since few need it and it takes its time. The package wants reflection to be there before it.
  await import('reflect-metadata');
  const { BasicConstraintsExtension, X509Certificate: Parsed } = await import('@peculiar/x509');
  return ({ raw }) => new Parsed(raw).getExtension(BasicConstraintsExtension)?.pathLength ?? null;
}
