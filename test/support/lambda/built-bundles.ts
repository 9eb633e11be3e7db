import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

/** What the build tells of a function. */
export interface BundleSize {
  readonly name: string;
  readonly bytes: number;
  readonly bytesMax: number;
  readonly indexBytes: number;
  readonly inputs: Readonly<Record<string, number>>;
}

export interface BuiltBundles {
  /** A folder outside of the project, with one bundle a function and no packages anywhere above it. */
  readonly folder: string;
  readonly sizes: readonly BundleSize[];
  remove(): Promise<void>;
}

/** Builds the functions into a temporary folder, as the deployment would take them. */
export async function buildBundles(): Promise<BuiltBundles> {
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-functions-'));
  const file = fileURLToPath(new URL('../../../infra/aws/build.mjs', import.meta.url));
  const { buildFunctions } = (await import(/* @vite-ignore */ file)) as {
    buildFunctions(outdir: string): Promise<BundleSize[]>;
  };
  const sizes = await buildFunctions(path.join(folder, 'functions'));
  return { folder: path.join(folder, 'functions'), sizes, remove: () => rm(folder, { recursive: true, force: true }) };
}
