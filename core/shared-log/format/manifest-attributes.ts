import { ATTRIBUTE_INDEXES, ATTRIBUTE_SETTING_DEFAULT } from '../../attributes/api.ts';
import type { AttributeIndexName, AttributeSetting } from '../../attributes/api.ts';
import { optional, record, whole } from '../../base/shape.ts';
import type { Shape } from '../../base/shape.ts';

/** What a manifest says of the attribute indexes of its log. */

interface ObjectAttributeIndex {
  /** All that is committed below this position has its entries in the tables. */
  readonly coveredTo: number;
}

/** Those that the log has by its setting; one that is absent is switched off. */
export type ObjectAttributes = { readonly [Name in AttributeIndexName]?: ObjectAttributeIndex };

/** What of a manifest says how its indexes stand. */
interface Said {
  readonly format: number;
  readonly logEnd: number;
  readonly files: readonly { readonly name: string }[];
  readonly attributes?: ObjectAttributes;
}

const one = optional(record<ObjectAttributeIndex>({ coveredTo: whole(0) }));
export const attributesShape: Shape<ObjectAttributes> = record<ObjectAttributes>({
  names: one,
  correlations: one,
  tags: one,
});

/** Names of tables of attribute indexes among the files of a manifest. */
export const ATTRIBUTE_TABLE_NAME =
  /^attributes\/(?:names|correlations|tags)\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ATTRIBUTE_FILE =
  /^attributes\/(names|correlations|tags)\/(?:indexmap|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.bloomfilter)?)$/;

/** Whether the name is that of a map, a table or a filter of an attribute index. */
export function isAttributeFile(name: string): boolean {
  return ATTRIBUTE_FILE.test(name);
}

/** What does not fit together; null when all is well. */
export function firstWrongAttribute({ format, logEnd, files, attributes = {} }: Said): string | null {
  const withTables = new Set<string>();
  const withMap = new Set<string>();
  for (const { name } of files) {
    const index = ATTRIBUTE_FILE.exec(name)?.[1];
    if (index === undefined) continue;
    if (attributes[index as AttributeIndexName] === undefined) return `index for the file ${name}`;
    if (name.endsWith('/indexmap')) withMap.add(index);
    else if (ATTRIBUTE_TABLE_NAME.test(name)) withTables.add(index);
  }
  if ((format === 3) !== withTables.size > 0) return 'tables of attribute indexes for its format';
  for (const index of ATTRIBUTE_INDEXES) {
    if (withTables.has(index) !== withMap.has(index)) return `map for the tables of attributes/${index}`;
    if ((attributes[index]?.coveredTo ?? 0) > logEnd) return `end for the index attributes/${index}`;
  }
  return null;
}

/** The setting by which the manifest was written; what is so without one where no tick has looked yet. */
export function settingOf({ attributes }: Pick<Said, 'attributes'>): AttributeSetting {
  if (attributes === undefined) return ATTRIBUTE_SETTING_DEFAULT;
  const { names, correlations, tags } = attributes;
  return { names: names !== undefined, correlations: correlations !== undefined, tags: tags !== undefined };
}

/** How far an index covers what is in the files. */
export function coveredTo({ attributes }: Pick<Said, 'attributes'>, index: AttributeIndexName): number {
  return attributes?.[index]?.coveredTo ?? 0;
}

/** Whether a tick has to do something for attribute indexes though no commit waits for it. */
export function isBehind(manifest: Pick<Said, 'attributes' | 'logEnd'>): boolean {
  const setting = settingOf(manifest);
  return ATTRIBUTE_INDEXES.some((index) => setting[index] && coveredTo(manifest, index) < manifest.logEnd);
}
