import { type FileFormat, HEAD_BYTES } from '../../core/ports/file-format.ts';
import type { StorageFile } from '../../core/ports/storage.ts';

/**
 * Areas that have kinds of files of their own. Those of which a name is likely are loaded first, the others only where
 * they have to be asked, too.
 */
const AREAS: readonly { readonly likely: RegExp; readonly load: () => Promise<readonly FileFormat[]> }[] = [
  {
    likely: /chunk-\d|\.chk|block-sums|proven-chunks|log-id|restoring|copy-unfinished|scavenge-due|\.scavenge$/,
    load: async () => (await import('../../core/log/format.ts')).LOG_FORMATS,
  },
  {
    likely:
      /indexmap|(?:index|names|correlations|tags)\/[0-9a-f]{8}-|bloomfilter|streamExistence|proven-tables|forceverify/,
    load: async () => (await import('../../core/index/format.ts')).INDEX_FORMATS,
  },
  {
    likely: /(?:log|manifest)\/\d{15}|files\/|probe\/|failures\//,
    load: async () => (await import('../../core/shared-log/format.ts')).OBJECT_LOG_FORMATS,
  },
  {
    likely: /skua-repository|manifests\/|blobs\/|shipped\/|active\/|pruning\/|proven$|unreferenced|suspect|node-id/,
    load: async () => (await import('../../core/backup/format.ts')).BACKUP_FORMATS,
  },
  {
    likely: /chain$|leaves-|receipt-/,
    load: async () => (await import('../../core/integrity/format.ts')).PROOF_FORMATS,
  },
  { likely: /scavenging/, load: async () => (await import('../../infra/sqlite/format.ts')).SQLITE_FORMATS },
  { likely: /skua\.lock|kurrent/, load: async () => (await import('../../infra/fs/format.ts')).DIRECTORY_FORMATS },
  { likely: /session\.key|audit/, load: async () => (await import('../../core/security/format.ts')).SECURITY_FORMATS },
  { likely: /\.json/, load: async () => (await import('../log/format.ts')).NODE_LOG_FORMATS },
  { likely: /control\//, load: async () => (await import('../../core/shared-log/tick/format.ts')).TICK_FORMATS },
  { likely: /nodes\//, load: async () => (await import('../../core/cluster/membership/format.ts')).MEMBERSHIP_FORMATS },
];

/** What stands behind a name while a file is made, copied or removed, and behind one that has been replaced. */
const UNFINISHED = /(?:\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.indexmap)?|\.copy|\.gone)?\.tmp$|\.old$/;

/** A path as the names of a kind have it. */
export interface NamedPath {
  readonly format: FileFormat;
  /** The end of the path, with the folders that belong to the name, and what lies before it. */
  readonly key: string;
  readonly root: string;
  /** It ends as what is not finished, or is no longer in use. */
  readonly isUnfinished: boolean;
}

/** The kind of a file with this path, by its name alone; null where that tells none. */
export async function formatByName(path: string): Promise<NamedPath | null> {
  const name = finishedName(path);
  for (const format of await inTurn(name)) {
    for (const pattern of format.names) {
      const found = pattern.exec(name);
      if (found === null) continue;
      const root = name.slice(0, found.index);
      return { format, root, key: path.slice(root.length), isUnfinished: name !== path };
    }
  }
  return null;
}

/** The kind of a file by how it begins, and where that tells none, by a name that is common; null for neither. */
export async function formatByContent(path: string, file: StorageFile): Promise<FileFormat | null> {
  const head = (await file.read(0, HEAD_BYTES)).slice();
  const formats = await allFormats();
  const name = finishedName(path);
  return (
    formats.find(({ begins }) => begins?.(head, file.size) === true) ??
    formats.find(({ lastNames = [] }) => lastNames.some((pattern) => pattern.test(name))) ??
    null
  );
}

export async function allFormats(): Promise<readonly FileFormat[]> {
  return (await Promise.all(AREAS.map(({ load }) => load()))).flat();
}

/** Kinds of the areas that have this name in all likelihood; all kinds where there are none. */
async function inTurn(name: string): Promise<readonly FileFormat[]> {
  const areas = AREAS.filter(({ likely }) => likely.test(name));
  return areas.length === 0 ? [] : (await Promise.all(areas.map(({ load }) => load()))).flat();
}

/** A name without what says that it is not finished. */
function finishedName(path: string): string {
  const shorter = path.replace(UNFINISHED, '');
  return shorter === path ? path : finishedName(shorter);
}
