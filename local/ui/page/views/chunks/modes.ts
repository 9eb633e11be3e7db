import { percentText } from '../../lib/format.ts';
import type { Cell } from './cells.ts';

/** By what the cells of the map are coloured. Each mode sorts them into bins, which its legend names. */

export type ModeName = 'removable' | 'state' | 'size' | 'position';

export interface Bin {
  readonly label: string;
  /** A token of the colours: bins differ in brightness, so that no user has to tell hues apart. */
  readonly token: string;
  /** Drawn over the colour where the cell is large enough, since brightness alone says nothing of kinds. */
  readonly pattern?: Pattern;
}

export type Pattern = 'stripes' | 'dots' | 'cross';

export interface Mode {
  readonly name: ModeName;
  readonly label: string;
  /** What the colours mean, in a sentence. */
  readonly about: string;
  readonly bins: readonly Bin[];
  /** The number of the bin of a cell. */
  binOf(cell: Cell, cells: readonly Cell[]): number;
}

/** Upper ends of the bins of what could be removed, in shares of the file. */
const REMOVABLE_ENDS = [0.05, 0.2, 0.5, 0.75] as const;
const FIFTHS = 5;

export const MODES: readonly Mode[] = [
  {
    name: 'removable',
    label: 'Removable',
    about: 'The share of each file that a scavenge would remove, as counted by the last dry run.',
    bins: [
      { label: 'not counted', token: '--surface-3', pattern: 'cross' },
      { label: 'nothing', token: '--ramp-2' },
      ...labelsTo(REMOVABLE_ENDS).map((label, i) => ({ label, token: `--heat-${i + 1}` })),
    ],
    binOf: ({ removable }) => {
      if (removable === null) return 0;
      // Files are made of blocks of 4 KiB: less than that is nothing.
      if (removable <= 0) return 1;
      const at = REMOVABLE_ENDS.findIndex((end) => removable <= end);
      return at < 0 ? 6 : at + 2;
    },
  },
  {
    name: 'state',
    label: 'Scavenged',
    about: 'Which files a scavenge has rewritten, and which it has merged.',
    bins: [
      { label: 'being written', token: '--heat-4', pattern: 'dots' },
      { label: 'never scavenged', token: '--ramp-3' },
      { label: 'scavenged', token: '--ramp-4', pattern: 'stripes' },
      { label: 'scavenged and merged', token: '--ramp-5', pattern: 'stripes' },
    ],
    binOf: ({ chunk, span }) => {
      if (chunk.isOngoing) return 0;
      if (!chunk.isScavenged) return 1;
      return span > 1 ? 3 : 2;
    },
  },
  {
    name: 'size',
    label: 'Size',
    about: 'How full each file is.',
    bins: labelsTo([0.2, 0.4, 0.6, 0.8]).map((label, i) => ({ label, token: `--ramp-${i + 1}` })),
    binOf: ({ fill }) => fifthOf(fill),
  },
  {
    name: 'position',
    label: 'Age',
    about: 'Where each file is in the log: the stronger the colour, the newer.',
    bins: ['oldest fifth', 'second', 'third', 'fourth', 'newest fifth'].map((label, i) => ({
      label,
      token: `--ramp-${i + 1}`,
    })),
    binOf: ({ chunk }, cells) => fifthOf(chunk.start / ((cells.at(-1)?.chunk.end ?? 0) + 1)),
  },
];

/** Names of bins by their upper ends, and of one for what lies beyond. */
function labelsTo(ends: readonly number[]): readonly string[] {
  return [...ends.map((end, i) => `${i === 0 ? 'up to' : 'to'} ${percentText(end)}`), 'more'];
}

/** The bin of a share from 0 to 1; what lies on a bound belongs below it. */
function fifthOf(share: number): number {
  return Math.min(FIFTHS - 1, Math.max(0, Math.ceil(share * FIFTHS - 1e-9) - 1));
}

export function modeOf(name: string | null): Mode {
  return MODES.find((mode) => mode.name === name) ?? MODES[0]!;
}
