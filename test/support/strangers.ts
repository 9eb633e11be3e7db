import { isOwnName, OWN_FOLDERS } from '../../core/ports/own-names.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { encodeText } from '../../core/base/text.ts';

/** Files of others in a data directory, with every kind of name but those that are ours. */

const GUID = '3f2504e0-4f89-41d3-9a0c-0305e82c3301';
/** A name of ours of each kind, by folder. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  '': [
    'chunk-000000.000000',
    'chunk-000001.000001.gone.tmp',
    `chunk-000001.000000.${GUID}.tmp`,
    'writer.chk',
    'truncate.chk.tmp',
    'log-id',
    'node-id',
    'proven-chunks',
    'block-sums',
    'restoring',
    'copy-unfinished',
    'scavenge-due',
    `${GUID}.scavenge.tmp`,
    `${GUID}.merge.scavenge.tmp`,
    `${GUID}.tmp`,
  ],
  index: ['indexmap', `indexmap.${GUID}.indexmap.tmp`, GUID, `${GUID}.bloomfilter`, 'proven-tables', '.forceverify'],
  'index/stream-existence': ['streamExistenceFilter.dat', 'streamExistenceFilter.chk'],
  'index/scavenging': ['scavenging.db', 'scavenging.db-wal', 'scavenging.db-shm'],
  proofs: ['chain', 'leaves-000000', 'receipt-0000000000', `${GUID.replaceAll('-', '')}.tmp`],
};
const NEARLY: readonly ((name: string) => string)[] = [
  (name) => `${name}.bak`,
  (name) => `${name}~`,
  (name) => `${name}.1`,
  (name) => `${name} (1)`,
  (name) => `${name}.orig`,
  (name) => `${name}.tmp.tmp`,
  (name) => `x${name}`,
  (name) => `.${name}.swp`,
  (name) => `#${name}#`,
  (name) => `_${name}`,
  (name) => name.toUpperCase(),
  (name) => name.slice(0, -1),
  (name) => `${name}0`,
];
const ANYWHERE = [
  'notes.txt',
  'README.md',
  'x.tmp',
  'data.tmp',
  '{guid}',
  '.DS_Store',
  'Thumbs.db',
  '.nfs00000000000a1b2c00000001',
  'indexmap.old',
  'lost+found/inside',
  'src/index.ts',
  `${GUID}.d/inside`,
  'chunk-000077.000000/inside',
  'index.old/indexmap',
  'archive/chunk-000000.000000',
  'archive/writer.chk',
];

/** Paths in a data directory that are nobody's of ours. */
export const STRANGERS: readonly string[] = [
  ...new Set(
    OWN_FOLDERS.flatMap((folder) => {
      const names = [...(OWN[folder] ?? []).flatMap((name) => NEARLY.map((change) => change(name))), ...ANYWHERE];
      return names.map((name) => (folder === '' ? name : `${folder}/${name}`));
    }),
  ),
].filter((path) => !isOwnName(path));

/** Puts them all there. */
export async function plantStrangers(storage: Storage): Promise<void> {
  for (const path of STRANGERS) {
    const file = await storage.create(path);
    await file.writeAt(0, encodeText(`somebody else's ${path}`));
    await file.sync();
    await file.close();
  }
}

/** When each was last changed, by path; -1 for one that is gone, -2 for one with other bytes. */
export async function strangersIn(storage: Storage): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const path of STRANGERS) {
    const modifiedMs = await storage.modifiedMs(path);
    if (modifiedMs === null) found.set(path, -1);
    else {
      const file = await storage.open(path, 'read');
      const text = new TextDecoder().decode(await file.read(0, file.size));
      await file.close();
      found.set(path, text === `somebody else's ${path}` ? modifiedMs : -2);
    }
  }
  return found;
}
