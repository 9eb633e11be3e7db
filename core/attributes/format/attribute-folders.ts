import { ATTRIBUTE_INDEXES, type AttributeIndexName } from '../api.ts';

/** Folder of an attribute index, under the data directory. */
export function attributeFolder(name: AttributeIndexName): string {
  return `attributes/${name}`;
}

export const ATTRIBUTE_FOLDERS: readonly string[] = ATTRIBUTE_INDEXES.map(attributeFolder);
