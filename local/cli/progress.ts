import type { Clock } from '../../core/ports/clock.ts';
import { coloursFor } from './io.ts';
import type { Io, Output } from './io.ts';

/** A bar is redrawn at most this often. */
const REDRAW_MS = 100;
/** Where there is no terminal a line is written at most this often. */
const LINE_MS = 3_000;
const BAR_LENGTH = 24;

interface ProgressState {
  readonly label: string;
  /** Shown behind the figures. */
  readonly detail?: string;
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

interface ProgressFigures extends ProgressState {
  readonly bytesPerSecond: number;
  /** Null until there is a rate. */
  readonly secondsLeft: number | null;
}

interface ProgressOptions {
  /** The bar is drawn here if it is a terminal. */
  readonly output: Output;
  readonly env: Io['env'];
  readonly clock: Clock;
  /** What to do with a line of progress where there is no terminal. */
  readonly onLine: (text: string, figures: ProgressFigures) => void;
}

/** Shows how far long work has come: a bar on a terminal, a line every few seconds elsewhere. */
export class Progress {
  readonly #options: ProgressOptions;
  readonly #isTerminal: boolean;
  #label = '';
  #startMs = 0;
  #startBytes = 0;
  #shownMs = 0;
  #isBarShown = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#isTerminal = options.output.isTTY === true && options.env['TERM'] !== 'dumb';
  }

  update(state: ProgressState): void {
    const now = this.#options.clock.monotonicMs();
    if (state.label !== this.#label) {
      this.clear();
      this.#label = state.label;
      this.#startMs = now;
      this.#startBytes = state.bytesDone;
      this.#shownMs = now;
      return;
    }
    if (now - this.#shownMs < (this.#isTerminal ? REDRAW_MS : LINE_MS)) return;
    this.#shownMs = now;
    const figures = this.#figures(state, now);
    if (this.#isTerminal) this.#draw(figures);
    else this.#options.onLine(progressText(figures), figures);
  }

  /** Takes the bar off the terminal, so that other lines can be written. */
  clear(): void {
    if (this.#isBarShown) this.#options.output.write('\r\u001B[2K');
    this.#isBarShown = false;
  }

  #figures(state: ProgressState, now: number): ProgressFigures {
    const bytesPerSecond = Math.max(0, (state.bytesDone - this.#startBytes) / Math.max(1, now - this.#startMs) * 1000);
    const left = Math.max(0, state.bytesTotal - state.bytesDone);
    return { ...state, bytesPerSecond, secondsLeft: bytesPerSecond > 0 ? left / bytesPerSecond : null };
  }

  #draw(figures: ProgressFigures): void {
    const { output, env } = this.#options;
    const part = figures.bytesTotal > 0 ? Math.min(1, figures.bytesDone / figures.bytesTotal) : 0;
    const full = Math.round(part * BAR_LENGTH);
    const bar = coloursFor(output, env).green('#'.repeat(full)) + '-'.repeat(BAR_LENGTH - full);
    const room = (output.columns ?? 100) - BAR_LENGTH - 4;
    output.write(`\r\u001B[2K[${bar}] ${progressText(figures).slice(0, Math.max(0, room))}`);
    this.#isBarShown = true;
  }
}

/** `rebuilding the index: 45 %, 1.2 GiB of 2.6 GiB, 310.5 MiB/s, 5 s left`, and the detail if there is one. */
export function progressText(figures: ProgressFigures): string {
  const percent = figures.bytesTotal > 0 ? Math.min(100, Math.floor(figures.bytesDone / figures.bytesTotal * 100)) : 0;
  const left = figures.secondsLeft === null ? '' : `, ${durationText(figures.secondsLeft)} left`;
  return `${figures.label}: ${percent} %, ${bytesText(figures.bytesDone)} of ${bytesText(figures.bytesTotal)}, ${bytesText(figures.bytesPerSecond)}/s${left}${figures.detail === undefined ? '' : `, ${figures.detail}`}`;
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
  return `${Math.floor(whole / 3_600)} h ${Math.floor(whole % 3_600 / 60)} min`;
}
