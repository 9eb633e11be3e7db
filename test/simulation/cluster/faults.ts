import { registerHooks } from 'node:module';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A piece of a source, and what stands there without the rule. */
export interface Edit {
  readonly file: string;
  readonly is: string;
  readonly becomes: string;
}

/**
 * Rules that can be left out, to see that the simulation notices. The sources stay as they are: this process alone
 * reads them otherwise.
 */
export const FAULTS: Readonly<Record<string, readonly Edit[]>> = {
  'no-fence': [{ file: 'test/simulation/cluster/forwarding.ts', is: 'log!.epoch?.number === epoch', becomes: 'true' }],
  'epoch-expects-nothing': [
    {
      file: 'core/cluster/replica/member-log.ts',
      is: 'return !isFirst || (known?.number ?? -1) !== after ? lost() : {',
      becomes: 'return {',
    },
  ],
  'existence-filter-not-fed': [
    {
      file: 'core/index/intake/intake.ts',
      is: 'if (this.#begins[i] === 1) index.addStream(hi, lo, position);',
      becomes: '',
    },
  ],
  'chunk-ended-by-intention': [
    {
      file: 'core/cluster/replica/replica-head.ts',
      is: 'if (this.#applied === this.#known && log.end < this.#nextStart) await',
      becomes: 'await',
    },
  ],
  'no-comparison-at-opening': [
    {
      file: 'core/cluster/replica/compare.ts',
      is: 'export async function checkLastBytes({ table, manifest, objects }: CompareParts): Promise<number> {',
      becomes:
        'export async function checkLastBytes({ table, manifest, objects }: CompareParts): Promise<number> { return COMPARED_BYTES;',
    },
    {
      file: 'core/cluster/replica/locate.ts',
      is: 'if (commit.end > replicaEnd - COMPARED_BYTES) await',
      becomes: 'if (commit.end < 0) await',
    },
  ],
  'whole-file-over-half-chunk': [
    {
      file: 'core/cluster/replica/truncate.ts',
      is: 'if (start === at || (at % size !== 0 && !stored.isScavenged && stored.startNumber === stored.endNumber)) return at;',
      becomes: 'if (start === at || at % size !== 0) return at;',
    },
    {
      file: 'core/cluster/replica/prepare-replica.ts',
      is: 'if (!isInside) return downloadFiles({ ...parts, from: inspection.end });',
      becomes:
        'if (inspection.end >= 0) return downloadFiles({ ...parts, from: Math.floor(inspection.end / chunkSizeBytes) * chunkSizeBytes });',
    },
  ],
  'given-before-committed': [
    {
      file: 'core/cluster/replica/replica-head.ts',
      is: '  async takeOwn(',
      becomes:
        '  giveSoon(commit: Commit, bytes: Uint8Array): void { this.recent.add(commit.number, bytes); this.#on.committed(); }\n  async takeOwn(',
    },
    {
      file: 'core/shared-log/commit-log/commit-log.ts',
      is: 'const startedAt = stampOf(clock);',
      becomes:
        'const startedAt = stampOf(clock); (head as { giveSoon?: (commit: Commit, bytes: Uint8Array) => void }).giveSoon?.(attempt.commit, alone);',
    },
  ],
  'no-patience': [
    { file: 'core/cluster/patience/patience.ts', is: 'if (ageMs > limitMs) return', becomes: 'if (ageMs < 0) return' },
  ],
  'no-standstill': [
    {
      file: 'core/cluster/patience/patience.ts',
      is: 'return ms > STILL_MS ? ms : 0;',
      becomes: 'return ms < 0 ? ms : 0;',
    },
  ],
  'no-age-at-leader': [
    { file: 'core/cluster/patience/patience.ts', is: 'atMs === null ? 0 : this.clock.nowMs() - atMs', becomes: '0' },
  ],
  'patience-by-monotonic-clock': [
    {
      file: 'core/cluster/patience/patience.ts',
      is: 'return Math.max(clock.nowMs() - this.#wallMs, clock.monotonicMs() - this.#monotonicMs);',
      becomes: 'return clock.monotonicMs() - this.#monotonicMs;',
    },
  ],
  'read-before-applied': [
    {
      file: 'test/simulation/cluster/forwarding.ts',
      is: 'if (log.end >= position) return Promise.resolve();',
      becomes: 'if (position >= 0) return Promise.resolve();',
    },
  ],
};

/** A piece of a source, however the formatter breaks its lines. */
function patternOf(is: string): RegExp {
  return new RegExp(
    is
      .trim()
      .split(/\s+/)
      .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('\\s+'),
  );
}

export function holds(source: string, is: string): boolean {
  return patternOf(is).test(source);
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Lets the rule out of all that is loaded from here on. Throws when the sources do not hold what is to be left out any
 * more.
 */
export function leaveOut(rule: string, faults = FAULTS): void {
  const edits = faults[rule];
  if (edits === undefined) throw new Error(`There is no rule ${rule}: ${Object.keys(faults).join(', ')}.`);
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      if (!url.startsWith('file:')) return loaded;
      const file = relative(ROOT, fileURLToPath(url)).split(sep).join('/');
      const mine = edits.filter((edit) => edit.file === file);
      if (mine.length === 0) return loaded;
      let source = String(loaded.source);
      if (loaded.source instanceof Uint8Array) source = Buffer.from(loaded.source).toString('utf8');
      for (const { is, becomes } of mine) {
        if (!holds(source, is))
          throw new Error(`${file} does not hold "${is}" any more: the fault ${rule} has to be put in otherwise.`);
        source = source.replace(patternOf(is), () => becomes);
      }
      return { ...loaded, source };
    },
  });
}
