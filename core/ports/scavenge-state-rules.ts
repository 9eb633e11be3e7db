import { SkuaError } from '../errors.ts';

/** What every implementation of the scavenge state does alike. */

/** Splits milliseconds that came with a fraction, and carries ticks beyond a millisecond. */
export function wholeTime(ms: number, ticks: number): { readonly ms: number; readonly ticks: number } {
  const whole = Math.floor(ms);
  const all = Math.round((ms - whole) * 10_000) + ticks;
  return { ms: whole + Math.floor(all / 10_000), ticks: all % 10_000 };
}

/** Order of texts by code points, which is that of their UTF-8 bytes. JavaScript's own order puts surrogates too low. */
export function compareCodePoints(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    const bothHigh = x >= 0xd800 && y >= 0xd800;
    // From here on surrogates stand for code points above all single units.
    return bothHigh && isSurrogate(x) !== isSurrogate(y) ? (isSurrogate(x) ? 1 : -1) : x - y;
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean { return unit >= 0xd800 && unit <= 0xdfff; }

/** A defect of the caller. */
export function misused(what: string): SkuaError {
  return new SkuaError('scavenge_failed', `${what} in the scavenge database: this is a defect.`);
}
