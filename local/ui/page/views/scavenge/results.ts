import type { Tone } from '../../parts/badge.tsx';

/** The tones of the ends of runs. */
export const RESULT_TONES: Readonly<Record<string, Tone>> = {
  Success: 'ok',
  Stopped: 'warn',
  Interrupted: 'warn',
  Errored: 'bad',
  InProgress: 'accent',
};
