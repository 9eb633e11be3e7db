import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { exportsOf } from '../../../infra/packaging/surfaces.mjs';
import { STORE_ERRORS } from '../../../local/embedded/embedded-errors.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

test('editors say something about each name that is exported, and about each method of a store', () => {
  const api = read('local/embedded/api.ts');
  const names = api.match(/^export (?:interface|type) .*/gm)!;
  const [methods] = /^export interface Store .*?^\}/ms.exec(api)!;
  const members = methods.match(/^ {2}(?:readonly |\[)?[A-Za-z].*[;(]$/gm)!;
  expect([names.length, members.length]).toEqual([
    expect.toSatisfy((count) => count > 30),
    expect.toSatisfy((count) => count > 15),
  ]);
  for (const line of [...names, ...members]) expect(api).toContain(`*/\n${line}`);
});

test('codes that are told with a method are in the table', () => {
  const told = [...read('local/embedded/api.ts').matchAll(/@throws (.*?)(?:\n\s*\* @|\*\/)/gs)].flatMap(([, text]) =>
    [...text!.matchAll(/`([a-z]+_[a-z_]+)`/g)].map(([, code]) => code!),
  );
  expect(told.length).toBeGreaterThan(30);
  expect(Object.keys(STORE_ERRORS)).toEqual(expect.arrayContaining(told));
  expect(Object.keys(STORE_ERRORS)).toEqual(Object.keys(STORE_ERRORS).toSorted());
});

test('package.json exports the surfaces, and nothing else', () => {
  expect((JSON.parse(read('package.json')) as { exports: unknown }).exports).toEqual(exportsOf());
});
