import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * What `test/containers/localstack.ts` gives. It is a package of its own: it may not be installed, and these types must
 * be known all the same.
 */
export interface Containers {
  startLocalstack(image: string): Promise<{ readonly id: string; readonly endpoint: string; stop(): Promise<void> }>;
  removeContainer(id: string): Promise<void>;
}

const at = (path: string) => fileURLToPath(new URL(`../../containers/${path}`, import.meta.url));

/** Null where what starts containers is not installed. */
export async function containers(): Promise<Containers | null> {
  if (!existsSync(at('node_modules/testcontainers/package.json'))) return null;
  const file = at('localstack.ts');
  return (await import(/* @vite-ignore */ file)) as Containers;
}
