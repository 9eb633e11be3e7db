/**
 * What systems, file managers and version control put into any folder: none of it shows that a folder is a stranger's.
 */
const SYSTEM: readonly RegExp[] = [
  /^lost\+found$/,
  /^\.snapshots?$/,
  /^\.zfs$/,
  /^\.nfs[0-9a-fA-F]+$/,
  /^\.fuse_hidden[0-9a-fA-F]+$/,
  /^\._/,
  /^\.DS_Store$/,
  /^\.Spotlight-V100$/,
  /^\.fseventsd$/,
  /^\.Trashes$/,
  /^\.Trash-\d+$/,
  /^Thumbs\.db$/i,
  /^desktop\.ini$/i,
  /^System Volume Information$/i,
  /^\$RECYCLE\.BIN$/i,
  /^@eaDir$/,
  /^#recycle$/,
  /^#snapshot$/,
  /^(aquota|quota)\.(user|group)$/,
  /^\.git(keep|ignore)$/,
  /^\.keep$/,
  /^\.empty$/,
  /^\.placeholder$/,
  /^\.directory$/,
  /^\.stfolder$/,
  /^CACHEDIR\.TAG$/,
];

/** Whether a file or a folder of this name, or what lies in such a folder, is the system's. */
export function isSystemPath(path: string): boolean {
  return path.split('/').some((name) => SYSTEM.some((pattern) => pattern.test(name)));
}
