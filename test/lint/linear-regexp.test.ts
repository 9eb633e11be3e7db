import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
// @ts-expect-error -- The linter loads it as plain JavaScript, on any version of Node.js.
import { problemOf as problem } from './linear-regexp.mjs';

const problemOf = problem as (pattern: string, flags: string) => string | null;

describe('the rule for regular expressions', () => {
  // The first four stood in the sources, over what clients send.
  test.each([
    [String.raw`^\/+|\/+$`, 'g'],
    [String.raw`^\s*charset\s*=\s*"?([^"\s]*)"?\s*$`, 'i'],
    [String.raw`(\.\d+?)0+$`, ''],
    ['0+$', ''],
    ['^(a+)+$', ''],
    ['^(a|a)*$', ''],
    ['^(ab|ac)+$', ''],
    [String.raw`^(?:\w+\s?)*$`, ''],
    ['(?:[^a]*b?)*', 'u'],
    [String.raw`.*\d`, ''],
    ['^a*a*b', ''],
    ['^(?:x(?:y*z)*)*$', ''],
  ])('refuses /%s/%s', (pattern, flags) => {
    expect(problemOf(pattern, flags)).not.toBeNull();
  });

  test.each([
    [String.raw`^\d{1,15}$`, ''],
    [String.raw`^\s*[[{]`, ''],
    ['^[^/]+/$', ''],
    [String.raw`^-?\d+(\.\d+)?$`, ''],
    ['(?:ab{2}){3}', ''],
    [String.raw`^(?:[^"\\]|\\.)*$`, ''],
    ['^(?:[0-9a-f]{2})*$', ''],
    [String.raw`\p{Cc}`, 'gu'],
    [String.raw`[\p{L}--[a]]`, 'v'],
  ])('lets /%s/%s pass', (pattern, flags) => {
    expect(problemOf(pattern, flags)).toBeNull();
  });

  test('is in force for all of the sources', () => {
    const { jsPlugins, overrides } = JSON.parse(
      readFileSync(new URL('../../.oxlintrc.json', import.meta.url), 'utf8'),
    ) as { jsPlugins: string[]; overrides: { files: string[]; rules: Record<string, unknown> }[] };
    expect(jsPlugins).toContain('./test/lint/linear-regexp.mjs');
    expect(overrides.find(({ rules }) => rules['hostile-input/linear-regexp'] === 'error')?.files).toEqual([
      'core/**',
      'handlers/**',
      'infra/**',
      'local/**',
    ]);
  });
});
