import { describe, expect, test } from 'vitest';
import { bundleNeutral } from '../../../infra/packaging/neutral.mjs';
import { NEUTRAL } from '../../../infra/packaging/surfaces.mjs';

/** Bytes of a bundle, compressed by gzip. */
const BYTES_MAX: Readonly<Record<string, number>> = { client: 15_000, events: 4_000 };

describe('surfaces that run wherever there is fetch', async () => {
  const bundles = await bundleNeutral();

  test.each(bundles.map((bundle) => [bundle.surface, bundle] as const))(
    'skua/%s is one file that imports nothing, small, of the web platform alone',
    async (surface, { text, bytes, sources, imports }) => {
      expect(NEUTRAL).toContain(surface);
      expect(bytes).toBeLessThan(BYTES_MAX[surface] ?? 15_000);
      expect(imports).toEqual([]);
      expect(text).not.toMatch(/\bimport\(|\brequire\(|node:/);
      expect(sources.filter((source) => !/^(?:core\/base|local\/[\w-]+)\//.test(source))).toEqual([]);
      // What is not there on other platforms, and is looked up when a module is loaded.
      const before = { process: globalThis.process, Buffer: globalThis.Buffer };
      Object.assign(globalThis, { process: undefined, Buffer: undefined });
      try {
        await import(`data:text/javascript,${encodeURIComponent(text)}`);
      } finally {
        Object.assign(globalThis, before);
      }
    },
  );
});
