import { readdir, readFile } from 'node:fs/promises';
import { expect, test, vi } from 'vitest';

const PAGE = new URL('../../local/ui/page/', import.meta.url);
const NO_TIMES = [Number.NaN, Infinity, -Infinity, 1e20];

type Format = typeof import('../../local/ui/page/lib/format.ts');

/** The formats of a browser that names its language so. */
async function formatsOf(language: string): Promise<Format & { readonly told: string }> {
  const navigator = { language };
  vi.stubGlobal('navigator', navigator);
  try {
    // Read anew for each language.
    const file = new URL(`lib/format.ts?${encodeURIComponent(language)}`, PAGE).href;
    const formats = (await import(/* @vite-ignore */ file)) as Format;
    return { ...formats, told: navigator.language };
  } finally {
    vi.unstubAllGlobals();
  }
}

test('a language that is none is mended before a chart asks for it, and numbers are as in its first part', async () => {
  const { numberText, told } = await formatsOf('en-US@posix');
  expect([numberText(12_345), told]).toEqual(['12,345', 'en-US']);
  const german = await formatsOf('de-DE');
  expect([german.numberText(12_345), german.told]).toEqual(['12.345', 'de-DE']);
  const { numberText: any, told: plain } = await formatsOf('@@');
  expect([any(1), Intl.getCanonicalLocales(plain)]).toEqual(['1', [plain]]);
});

test('what is no time, no number and no time zone throws nothing', async () => {
  const formats = await formatsOf('en-US');
  for (const none of NO_TIMES) {
    expect([
      formats.absoluteText(none),
      formats.clockText(none),
      formats.dayText(none),
      formats.nearText(none, 0),
      formats.relativeText(none, 0),
      formats.zonedMinutes('Nowhere/At-all')(none),
    ]).toEqual(Array.from({ length: 6 }, () => '–'));
    expect(formats.msOf(none)).toBeNull();
  }
  expect([formats.numberText(Number.NaN), formats.bytesText(null), formats.durationText(Infinity)]).toEqual([
    '–',
    '–',
    '–',
  ]);
  expect(formats.zonedMinutes('Nowhere/At-all')(0)).toContain('1970');
});

test('a minus is no hyphen', async () => {
  const { bytesText, durationText, numberText, percentText } = await formatsOf('en-US');
  expect([bytesText(-8_192), durationText(-2_000), numberText(-1_234), percentText(-0.5)]).toEqual([
    '−8\u00a0KiB',
    '−2\u00a0s',
    '−1,234',
    '−50%',
  ]);
});

test('a size is told in the next unit from 1,024 on, so that what is more never looks like less', async () => {
  const { bytesText } = await formatsOf('en-US');
  expect([990, 1_003_520, 1_012 * 1_024, 1_024 * 1_024].map((bytes) => bytesText(bytes))).toEqual([
    '990\u00a0B',
    '980\u00a0KiB',
    '1,012\u00a0KiB',
    '1\u00a0MiB',
  ]);
});

test('a share that is not nothing is not told as nothing', async () => {
  const { percentText } = await formatsOf('en-US');
  expect([0, 0.000_014, 0.000_06, 0.002_5, 0.5].map((share) => percentText(share))).toEqual([
    '0%',
    '<0.01%',
    '0.01%',
    '0.25%',
    '50%',
  ]);
});

test('how long ago something was is told in the units of durations, in any language of the browser', async () => {
  const { durationText, relativeText, roughText } = await formatsOf('en-US');
  const hour = 3_600_000;
  const plain = (text: string) => text.replaceAll('\u00a0', ' ');
  expect([-4_000, -40_000, -61_000, -2.6 * hour, 2 * hour, 30 * hour].map((ms) => plain(relativeText(ms, 0)))).toEqual([
    'just now',
    '40 s ago',
    '1 min ago',
    '3 h ago',
    'in 2 h',
    'in 1 d',
  ]);
  expect(plain(durationText(2.6 * hour))).toBe('2 h 36 min');
  expect(plain(roughText(2.6 * hour))).toBe('3 h');
  expect(plain((await formatsOf('de-DE')).relativeText(-2 * hour, 0))).toBe('2 h ago');
});

test('nothing else of the page asks for a locale', async () => {
  const files = (await readdir(PAGE, { recursive: true })).filter((file) => /\.tsx?$/.test(file));
  expect(files.length).toBeGreaterThan(100);
  const asking = [];
  for (const file of files)
    if (/\bIntl\.|\.toLocale|navigator\.language/.test(await readFile(new URL(file, PAGE), 'utf8'))) asking.push(file);
  expect(asking).toEqual(['lib/format.ts']);
});

test('hours have no zero before them, on axes as in tables', async () => {
  const { clockText, minuteText } = await formatsOf('en-US');
  const nine = new Date(2026, 10, 28, 9, 15, 4).getTime();
  expect([clockText(nine), minuteText(nine)].map((text) => text.replace('\u202f', ' '))).toEqual([
    '9:15:04 AM',
    '9:15 AM',
  ]);
});
