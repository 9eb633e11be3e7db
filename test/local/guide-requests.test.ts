import { describe, expect, test } from 'vitest';
import { openApiDocument } from '../../handlers/openapi/document.ts';
import { ROUTES } from '../../handlers/routes.ts';
import { pages } from './guide-blocks.ts';

/** README and guide ask for addresses that there are, with parameters that they know. */

interface Parameter {
  readonly name?: string;
  readonly in?: string;
  readonly $ref?: string;
}
const document = openApiDocument(ROUTES, { version: '1', isSecured: true }) as unknown as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly parameters?: readonly Parameter[] }>>>>;
  readonly components: { readonly parameters?: Readonly<Record<string, Parameter>> };
};

const TEMPLATES = Object.entries(document.paths).map(([template, operations]) => ({
  template,
  pattern: new RegExp(
    `^${decodeURIComponent(template)
      .replaceAll(/[.$]/g, '\\$&')
      .replaceAll(/\{[^}]*\}/g, '[^/]+')}$`,
  ),
  queries: new Set(
    Object.values(operations)
      .flatMap(({ parameters = [] }) => parameters)
      .map((each) => (each.$ref === undefined ? each : document.components.parameters![each.$ref.split('/').at(-1)!]!))
      .filter((each) => each.in === 'query')
      .map((each) => each.name!),
  ),
}));

/** Views of the page and its files, which are no routes of the interface. */
const ELSEWHERE = /^\/(?:ui|webhook)\b/;
/** In a command, or behind a method or alone in a phrase of code. */
const COMMAND = /http:\/\/127\.0\.0\.1:2113(\/[^\s'"`)]*)/g;
const PHRASE =
  /`(?:(?:GET|POST|PUT|DELETE) )?(\/(?:admin|streams|users|subscriptions|connectors|auto-scavenge|health|cluster)\b[^\s`]*)`/g;

/** It lists what the other database answers. */
const COMPARED = 'local/guide/compatibility.md';

const asked = pages()
  .filter(({ file }) => file !== COMPARED)
  .flatMap(({ file, text }) =>
    [COMMAND, PHRASE].flatMap((pattern) => [...text.matchAll(pattern)].map(([, address]) => [file, address!] as const)),
  );

describe('README and guide', () => {
  test('name requests', () => {
    expect(asked.length).toBeGreaterThan(80);
  });

  test.each(asked)('%s: %s', (_, address) => {
    const [path, query = ''] = address.split('?') as [string, string?];
    if (ELSEWHERE.test(path) || path === '/') return;
    const found = TEMPLATES.filter(({ pattern }) => pattern.test(path));
    expect(found.map(({ template }) => template)).not.toEqual([]);
    for (const name of new URLSearchParams(query).keys())
      expect(found.flatMap(({ queries }) => [...queries])).toContain(name);
  });
});
