import { SkuaError } from '../../core/base/errors.ts';
import { silentLog } from '../../core/ports/log.ts';
import { type ErasureChecks, NodeErasureChecks } from '../../core/scavenge/erasure-checks/erasure-checks.ts';
import type { ErasureReport } from '../../core/scavenge/erasure/erasure.ts';
import type { ManualClock } from './manual-clock.ts';
import { FakeScavenger } from './fake-scavenger.ts';

/** The first proof that is begun has this id. */
export const PROOF_ID = '0d0f7c3e-1d3e-4c55-8a5a-53e2c1b6a0f4';
export const ERASURE_REPORT: ErasureReport = {
  files: 3,
  bytes: 4_096,
  traces: 1,
  residues: 1,
  redacted: 0,
  unknownEvents: [],
  findings: [{ kind: 'trace', file: 'chunk-000000.000000', offset: 128, what: 'a record' }],
};

/** Real proofs whose search ends when it is told to, or with the report that is given. */
export function fakeErasure(
  clock: ManualClock,
  {
    report = null,
    scavenger = new FakeScavenger(),
  }: { readonly report?: ErasureReport | SkuaError | null; readonly scavenger?: FakeScavenger } = {},
): ErasureChecks & { readonly proofs: NodeErasureChecks } {
  let made = 0;
  const uuidBytes = (): Uint8Array =>
    Uint8Array.from(Buffer.from(PROOF_ID.replaceAll('-', '').slice(0, -1) + ((4 + made++) % 16).toString(16), 'hex'));
  const proofs = new NodeErasureChecks({
    clock,
    log: silentLog,
    scavenger,
    ids: { uuidBytes },
    jobs: {
      run: (_name, _args, { signal, onProgress } = {}) => {
        onProgress?.({ done: 5, total: 10, unit: 'bytes' });
        if (report !== null) return report instanceof SkuaError ? Promise.reject(report) : Promise.resolve(report);
        return new Promise((_, reject) =>
          signal!.addEventListener('abort', () => reject(new SkuaError('aborted', 'It was ended.'))),
        );
      },
    },
  });
  return {
    proofs,
    start: (wanted) => proofs.start(wanted),
    list: () => proofs.list(),
    get: (id) => proofs.get(id),
    abort: (id) => proofs.abort(id),
  };
}
