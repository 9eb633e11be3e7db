import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';

/**
 * What removes files of this machine beside the Storage and the object stores, which ask for names of ours by
 * themselves: by a name that has to be one of ours, or with the whole of a folder that this process has made. A test
 * looks that nothing else does (`test/structure.test.ts`).
 */

/** Whether a name, without its folder, is one that the caller, which removes files, gives to its own. */
export type OwnName = (name: string) => boolean;

/**
 * Removes a file by a name that has to be own; none there is no error. Throws `io_error` for another name, which is a
 * defect.
 */
export async function removeFile(file: string, isOwn: OwnName): Promise<void> {
  checkName(file, isOwn);
  await rm(file, { force: true });
}

/** As `removeFile`, at once. */
export function removeFileNow(file: string, isOwn: OwnName): void {
  checkName(file, isOwn);
  rmSync(file, { force: true });
}

function checkName(file: string, isOwn: OwnName): void {
  if (!isOwn(path.basename(file)))
    throw new SkuaError('io_error', `${file} is not a name that Skua uses, so it is not removed: this is a defect.`, {
      path: file,
    });
}

/** A folder with a name that was not in use. */
export class TemporaryFolder {
  readonly path: string;

  private constructor(at: string) {
    this.path = at;
  }

  /** In `parent`, by default that of this machine for temporary files. */
  static async make(prefix: string, parent: string = tmpdir()): Promise<TemporaryFolder> {
    return new TemporaryFolder(await mkdtemp(path.join(parent, prefix)));
  }

  /** With all that is in it. */
  remove(): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }

  removeNow(): void {
    rmSync(this.path, { recursive: true, force: true });
  }

  /** Removes a folder that was made in it. */
  removeInside(name: string): Promise<void> {
    return rm(path.join(this.path, path.basename(name)), { recursive: true, force: true });
  }
}
