import { SkuaError } from '../../core/base/errors.ts';

/** Characters of a name that every database takes. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;

/** A table as it stands in a statement: its name, or those of its schema and its own. Throws `bad_option`. */
export function quotedTable(table: string): string {
  const parts = typeof table === 'string' ? table.split('.') : [];
  if (parts.length < 1 || parts.length > 2 || !parts.every((part) => NAME.test(part)))
    throw new SkuaError(
      'bad_option',
      `${JSON.stringify(table)} can't be the name of a table: use at most 63 letters, digits and underscores, with a schema before a point if you like.`,
      { option: 'table', value: table },
    );
  return parts.map((part) => `"${part}"`).join('.');
}
