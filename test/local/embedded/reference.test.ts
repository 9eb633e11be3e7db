import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { exportsOf } from '../../../infra/packaging/surfaces.mjs';
import { STORE_ERRORS } from '../../../local/embedded/errors.ts';
import * as embedded from '../../../local/embedded/index.ts';
import { referencePage } from '../../../local/embedded/reference.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

test('the reference page is current: `npm run reference` writes it', () => {
  expect(read('local/embedded/REFERENCE.md')).toBe(referencePage());
});

test('it has every name that is exported, every member with its type, and says something about each', () => {
  const page = referencePage();
  const api = read('local/embedded/api.ts');
  const names = [...api.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(30);
  for (const name of [...names, 'openStore', 'Errors']) expect(page).toMatch(new RegExp(`^## ${name}\n\n[A-Z\`]`, 'm'));
  for (const name of Object.keys(embedded)) expect(page).toContain(name);
  const members = [...api.matchAll(/^ {2}(?:readonly )?(\w+)\??(?:: |\(|<)/gm)].map(([, name]) => name!);
  expect(members.length).toBeGreaterThan(100);
  for (const name of members) expect(page).toMatch(new RegExp(`\`${name}\\??\`|store\\.${name}\n|readonly ${name}\\??:`));
});

test('codes that are told with a method are in the table', () => {
  const told = [...referencePage().matchAll(/^Rejects with (.*)$/gm)].flatMap(([, text]) => [...text!.matchAll(/`([a-z]+_[a-z_]+)`/g)].map(([, code]) => code!));
  expect(told.length).toBeGreaterThan(30);
  expect(Object.keys(STORE_ERRORS)).toEqual(expect.arrayContaining(told));
  expect(Object.keys(STORE_ERRORS)).toEqual(Object.keys(STORE_ERRORS).toSorted());
});

test('package.json exports the surfaces, and nothing else', () => {
  expect((JSON.parse(read('package.json')) as { exports: unknown }).exports).toEqual(exportsOf());
});
