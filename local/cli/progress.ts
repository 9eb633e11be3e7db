import { CLEAR_LINE, coloursFor, draw } from '../../infra/runtime/io.ts';
import type { Io } from '../../infra/runtime/io.ts';

/** A bar is redrawn at most this often. */
const REDRAW_MS = 100;
/**
 * Where there is no terminal a line is written at most this often, and only when so many percent are done since the
 * last one, or as much time has passed.
 */
const LINE_MS = 3_000;
const LINE_PERCENT = 5;
const LINE_ANYWAY_MS = 30_000;
/** Columns of a terminal that says nothing of its width. */
const COLUMNS_DEFAULT = 100;
/** What the text beside the bar takes; the bar has the rest of the terminal. */
const TEXT_COLUMNS = 76;
const BAR_MIN = 16;
/** Share of the work from which on the time left can be estimated. */
const TELLING_SHARE = 0.02;

/** The phases of one piece of work in their order, by label, each with its share of the time as a rule, in percent. */
export type Phases = Readonly<Record<string, number>>;

export interface ProgressState {
  /** Of the phase, where the work has several. */
  readonly label: string;
  /** Shown behind the figures. */
  readonly detail?: string;
  readonly bytesDone: number;
  /** 0 for a phase that counts no bytes. */
  readonly bytesTotal: number;
  /** Share of the phase that is done, from 0 to 1, where it is not that of its bytes. */
  readonly share?: number;
  /** The phases of the work: one bar goes over all of them. Without them each label is a work of its own. */
  readonly phases?: Phases;
}

interface ProgressFigures extends ProgressState {
  /** Share of the whole work that is done, from 0 to 1. */
  readonly done: number;
  /** Of the phase. */
  readonly bytesPerSecond: number;
  /** Of the whole work; null until it can be estimated. */
  readonly secondsLeft: number | null;
}

interface ProgressOptions {
  /** The bar is drawn on its stderr if that is a terminal. */
  readonly io: Pick<Io, 'stderr' | 'env' | 'monotonicMs'>;
  /** What to do with a line of progress where there is no terminal. */
  readonly onLine: (text: string, figures: ProgressFigures) => void;
}

/** Share of the whole work that is done, by the weights of its phases. */
export function shareDone({
  label,
  bytesDone,
  bytesTotal,
  share = bytesTotal > 0 ? bytesDone / bytesTotal : 0,
  phases,
}: ProgressState): number {
  const own = Math.min(1, Math.max(0, share));
  if (phases === undefined || phases[label] === undefined) return own;
  let before = 0;
  let total = 0;
  let isBefore = true;
  for (const [name, weight] of Object.entries(phases)) {
    if (name === label) isBefore = false;
    if (isBefore) before += weight;
    total += weight;
  }
  return (before + phases[label] * own) / total;
}

/** Seconds that the whole work takes yet, where it began `elapsedSeconds` ago; `ofPhase` for work without phases. */
export function timeLeft(state: ProgressState, elapsedSeconds: number, ofPhase: number | null): number | null {
  if (state.phases === undefined) return ofPhase;
  const done = shareDone(state);
  return done >= TELLING_SHARE ? (elapsedSeconds * (1 - done)) / done : null;
}

/** Shows how far long work has come: one bar that never goes back on a terminal, a line now and then elsewhere. */
export class Progress {
  readonly #options: ProgressOptions;
  readonly #isTerminal: boolean;
  #label: string | null = null;
  /** Of the label. */
  #startMs = 0;
  #startBytes = 0;
  /** Of the work. */
  #beganMs = 0;
  #beganDone = 0;
  #done = 0;
  #shownMs = 0;
  #shownDone = 0;
  #isBarShown = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
    const { stderr, env } = options.io;
    this.#isTerminal = stderr.isTTY === true && env['TERM'] !== 'dumb';
  }

  update(state: ProgressState): void {
    const now = this.#options.io.monotonicMs();
    if (state.label !== this.#label) this.#begin(state, now);
    // What was counted anew, or grew while it was counted, does not take back what was shown.
    this.#done = Math.max(this.#done, shareDone(state));
    if (!this.#isDue(now)) return;
    this.#shownMs = now;
    this.#shownDone = this.#done;
    const figures = this.#figures(state, now);
    if (this.#isTerminal) this.#draw(figures);
    else this.#options.onLine(progressText(figures), figures);
  }

  #begin(state: ProgressState, now: number): void {
    const isSameWork =
      this.#label !== null && state.phases?.[state.label] !== undefined && state.phases[this.#label] !== undefined;
    this.#label = state.label;
    this.#startMs = now;
    this.#startBytes = state.bytesDone;
    if (isSameWork) return;
    this.clear();
    this.#beganMs = now;
    this.#done = 0;
    this.#beganDone = shareDone(state);
    this.#shownMs = now;
    this.#shownDone = 0;
  }

  #isDue(now: number): boolean {
    const sinceMs = now - this.#shownMs;
    if (this.#isTerminal) return sinceMs >= REDRAW_MS;
    return sinceMs >= LINE_ANYWAY_MS || (sinceMs >= LINE_MS && (this.#done - this.#shownDone) * 100 >= LINE_PERCENT);
  }

  /** Takes the bar off the terminal, so that other lines can be written. */
  clear(): void {
    if (this.#isBarShown) draw(this.#options.io.stderr, CLEAR_LINE);
    this.#isBarShown = false;
  }

  #figures(state: ProgressState, now: number): ProgressFigures {
    const done = this.#done;
    const bytesPerSecond = Math.max(
      0,
      ((state.bytesDone - this.#startBytes) / Math.max(1, now - this.#startMs)) * 1000,
    );
    const made = done - this.#beganDone;
    const secondsLeft =
      state.phases === undefined
        ? bytesPerSecond > 0
          ? Math.max(0, state.bytesTotal - state.bytesDone) / bytesPerSecond
          : null
        : made >= TELLING_SHARE
          ? (((now - this.#beganMs) / 1000) * (1 - done)) / made
          : null;
    return { ...state, done, bytesPerSecond, secondsLeft };
  }

  #draw(figures: ProgressFigures): void {
    const { stderr: output, env } = this.#options.io;
    const columns = output.columns || COLUMNS_DEFAULT;
    const length = Math.max(BAR_MIN, columns - TEXT_COLUMNS);
    const full = Math.round(figures.done * length);
    const bar = coloursFor(output, env).green('#'.repeat(full)) + '-'.repeat(length - full);
    draw(output, CLEAR_LINE);
    output.write(`[${bar}] ${progressText(figures).slice(0, Math.max(0, columns - length - 4))}`);
    this.#isBarShown = true;
  }
}

/**
 * `rebuilding the index: 45 %, 1.2 GiB of 2.6 GiB, 310.5 MiB/s, 5 s left`, and the detail if there is one. Of work in
 * phases the percentage and the time are those of the whole, and the bytes those of the phase: `45 %, 5 s left,
 * accumulation: 1.2 GiB of 2.6 GiB, 310.5 MiB/s`.
 */
export function progressText(figures: ProgressFigures): string {
  const { label, phases, done, bytesDone, bytesTotal, bytesPerSecond, secondsLeft, detail } = figures;
  const percent = `${Math.min(100, Math.floor(done * 100))} %`;
  const bytes =
    bytesTotal > 0 || phases === undefined
      ? [`${bytesText(bytesDone)} of ${bytesText(bytesTotal)}`, `${bytesText(bytesPerSecond)}/s`]
      : [];
  const left = secondsLeft === null ? [] : [`${durationText(secondsLeft)} left`];
  const behind = detail === undefined ? [] : [detail];
  if (phases === undefined) return `${label}: ${[percent, ...bytes, ...left, ...behind].join(', ')}`;
  const ofPhase = [...bytes, ...behind];
  return `${[percent, ...left, label].join(', ')}${ofPhase.length === 0 ? '' : `: ${ofPhase.join(', ')}`}`;
}

/** Bytes for people, with one decimal. */
export function bytesText(bytes: number): string {
  if (bytes < 0) return `-${bytesText(-bytes)}`;
  if (bytes < 1024) return `${Math.round(bytes)} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes / 1024;
  let unit = 0;
  for (; value >= 1023.95 && unit < units.length - 1; unit++) value /= 1024;
  return `${value.toFixed(1)} ${units[unit]}`;
}

/** How long something took: like `durationText`, but with a decimal below ten seconds. */
export function elapsedText(seconds: number): string {
  return seconds < 9.95 ? `${seconds.toFixed(1)} s` : durationText(seconds);
}

/** Seconds for people: `8 s`, `3 min 20 s`, `2 h 5 min`. */
export function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
}
