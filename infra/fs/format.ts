import { type FileFormat, jsonParts, note } from '../../core/ports/file-format.ts';
import { LOCK_OWNER_FILE } from './directory-lock.ts';

/** Describes, for `skua inspect`, what locks a data directory, and what others keep beside it. */

const LOCK: FileFormat = {
  kind: 'lock',
  title: 'lock of the directory',
  names: [/(?<=^|\/)(?:index\/)?skua\.lock(?:-journal)?$/],
  async *parts() {
    yield note(`It carries the operating system lock and is empty; ${LOCK_OWNER_FILE} names its owner.`);
  },
};

const OWNER: FileFormat = {
  kind: 'lock-owner',
  title: 'owner of the directory lock',
  names: [/(?<=^|\/)(?:index\/)?skua\.lock\.owner$/],
  parts: (looked) => jsonParts(looked, 'bad_json'),
};

const FOREIGN: FileFormat = {
  kind: 'foreign',
  title: 'file of the reference database',
  names: [/(?<=^|\/)kurrent\.ddb(?:\.wal)?$/],
  async *parts() {
    yield note('A database of newer versions of the reference database: nothing here reads it.');
  },
};

export const DIRECTORY_FORMATS: readonly FileFormat[] = [LOCK, OWNER, FOREIGN];
