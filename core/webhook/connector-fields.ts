import type { Violation } from './active.ts';
import type { Settings } from './api.ts';
import { shown } from './connector-flatten.ts';

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}$/;
/** `hh:mm:ss` with days and a fraction if need be. Hours may exceed a day, since people write three days as 72:00:00. */
const TIME_SPAN = /^(?:(\d{1,4})\.)?(\d{1,5}):([0-5]\d):([0-5]\d)(?:\.(\d{1,7}))?$/;

/** Reads settings with their types, and notes what is wrong with them. */
export class SettingFields {
  readonly settings: Settings;
  readonly violations: Violation[] = [];

  constructor(settings: Settings) {
    this.settings = settings;
  }

  violate(field: string, description: string): void {
    this.violations.push({ field, description });
  }

  /** Without white space around it; null when absent or empty. */
  text(name: string): string | null {
    return this.settings.get(name)?.trim() || null;
  }

  boolean(name: string, otherwise: boolean): boolean {
    const text = this.text(name)?.toLowerCase() ?? null;
    if (text === null) return otherwise;
    if (text !== 'true' && text !== 'false') this.violate(name, 'Give true or false.');
    return text === 'true';
  }

  integer(name: string, otherwise: number, min: number, max: number): number {
    const text = this.text(name);
    if (text === null) return otherwise;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) this.violate(name, `Give a whole number from ${min} to ${max}.`);
    return value;
  }

  /** Milliseconds. */
  timeSpan(name: string, otherwise: number, minMs: number, maxMs: number): number {
    const text = this.text(name);
    if (text === null) return otherwise;
    const match = TIME_SPAN.exec(text);
    if (match === null) {
      this.violate(name, `'${shown(text)}' is no time span. Write hh:mm:ss, as 00:00:30.`);
      return otherwise;
    }
    const [, days = '0', hours, minutes, seconds, fraction = '0'] = match;
    const ms = ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60_000 + Number(seconds) * 1_000 + Math.floor(Number(fraction.padEnd(7, '0')) / 10_000);
    if (ms < minMs || ms > maxMs) this.violate(name, `Give a time span from ${minMs / 1_000} to ${maxMs / 1_000} seconds.`);
    return ms;
  }

  /** Lower-cased; null when absent or empty. */
  headerName(name: string): string | null {
    const text = this.text(name);
    if (text !== null && !HEADER_NAME.test(text)) this.violate(name, `'${shown(text)}' is no name of a header.`);
    return text?.toLowerCase() ?? null;
  }
}
