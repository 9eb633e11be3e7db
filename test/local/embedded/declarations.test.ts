import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { exportsOf, SURFACES } from '../../../infra/packaging/surfaces.mjs';
import { STORE_ERRORS } from '../../../local/embedded/embedded-errors.ts';
import { ROOT } from '../spawn.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

const APIS = ['local/event-store/api.ts', 'local/embedded/api.ts', 'local/client/api.ts'];

test('editors say something about each name that is exported, and about each method of a store', () => {
  const api = APIS.map(read).join('');
  const names = api.match(/^export (?:interface|type) \w.*/gm)!;
  const members = [...api.matchAll(/^export interface (?:(?:Event)?Store|Client) .*?^\}/gms)]
    .join('')
    .match(/^ {2}(?:readonly |\[)?[A-Za-z].*[;(]$/gm)!;
  expect([names.length, members.length]).toEqual([
    expect.toSatisfy((count) => count > 30),
    expect.toSatisfy((count) => count > 15),
  ]);
  for (const line of [...names, ...members]) expect(api).toContain(`*/\n${line}`);
});

test('codes that are told with a method are in the table', () => {
  const told = [
    ...APIS.map(read)
      .join('')
      .matchAll(/@throws (.*?)(?:\n\s*\* @|\*\/)/gs),
  ].flatMap(([, text]) => [...text!.matchAll(/`([a-z]+_[a-z_]+)`/g)].map(([, code]) => code!));
  expect(told.length).toBeGreaterThan(30);
  expect(Object.keys(STORE_ERRORS)).toEqual(expect.arrayContaining(told));
  expect(Object.keys(STORE_ERRORS)).toEqual(Object.keys(STORE_ERRORS).toSorted());
});

test('samples run on every Node.js that `engines` names, also on those that do not know `using`', () => {
  const samples = globSync(`local/{${SURFACES.join(',')}}/*.ts`, { cwd: ROOT }).flatMap((file) =>
    [...read(file).matchAll(/@example\n((?: *\* .*\n)+)/g)].map(([, sample]) => sample!),
  );
  expect(samples.length).toBeGreaterThan(1);
  for (const sample of samples) expect(sample).not.toMatch(/\busing\b/);
});

test('package.json exports the surfaces, and nothing else', () => {
  expect((JSON.parse(read('package.json')) as { exports: unknown }).exports).toEqual(exportsOf());
});
