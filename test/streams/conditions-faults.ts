import type { Edit } from '../simulation/cluster/faults.ts';

/** Rules of appends on a condition that the simulations of them can leave out. */
export const CONDITION_FAULTS: Readonly<Record<string, readonly Edit[]>> = {
  'no-tail': [
    {
      file: 'core/streams/condition-search.ts',
      is: 'if (scan.step(SLICE_RECORDS, Infinity) !== END)',
      becomes: 'if (scan.examined < 0)',
    },
  ],
  'no-group': [
    {
      file: 'core/streams/conditions.ts',
      is: 'search.mayMatch(group) ? VERDICT.WAIT : VERDICT.NEW',
      becomes: 'VERDICT.NEW',
    },
  ],
  'decided-once': [
    {
      file: 'core/streams/condition-search.ts',
      is: "return this.#hasLoosened() ? 'again' : 'holds';",
      becomes: "this.decide = () => 'holds'; return this.#hasLoosened() ? 'again' : 'holds';",
    },
  ],
  'refused-as-found': [
    {
      file: 'core/streams/condition-search.ts',
      is: "if (this.#isOutdated()) return 'again';",
      becomes: "if (this.#found === null && this.#isOutdated()) return 'again';",
    },
  ],
  'hidden-counts': [
    {
      file: 'core/streams/event-judge.ts',
      is: 'if (!this.#asksStreams) return WANTED;',
      becomes: 'if (!this.#asksStreams || this.#filter.forDecisions === true) return WANTED;',
    },
    {
      file: 'core/streams/condition-search.ts',
      is: 'return retention.ruleAgainst(number, createdMs, createdTicks) !== null;',
      becomes: 'return false;',
    },
    {
      file: 'core/streams/condition-search.ts',
      is: 'if (isTombstoned || isMissing) return true;',
      becomes: '',
    },
    {
      file: 'core/streams/condition-search.ts',
      is: 'if (state === undefined) return true;',
      becomes: 'if (state === undefined) return false;',
    },
  ],
  'loosened-counts-not': [
    {
      file: 'core/streams/condition-search.ts',
      is: 'if (latest === undefined || latest.metadataVersion !== version) return true;',
      becomes: 'if (latest === undefined && version < -1) return true;',
    },
  ],
  'after-counts': [
    {
      file: 'core/streams/condition-search.ts',
      is: 'commit: after === undefined ? 0 : after + 1',
      becomes: 'commit: after === undefined ? 0 : after',
    },
  ],
  'repeat-refused': [
    {
      file: 'core/streams/condition-search.ts',
      is: 'this.#repeat = this.#ids().has(this.#found.id) ?',
      becomes: 'this.#repeat = this.#ids.size < 0 ?',
    },
  ],
};
