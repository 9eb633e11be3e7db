import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { onTestFinished } from 'vitest';
import type { CertificateOptions } from '../../../local/tls/load-certificates.ts';

/** A folder with certificates as an operator lays them out. Gone when the test has finished. */
export class Files {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Entries of `roots/` are named with it. */
  static async of(entries: Readonly<Record<string, string | Buffer>>): Promise<Files> {
    const folder = await mkdtemp(path.join(tmpdir(), 'skua-tls-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const files = new Files(folder);
    await mkdir(path.join(folder, 'roots'));
    for (const [name, content] of Object.entries(entries)) await files.write(name, content);
    return files;
  }

  path(name: string): string {
    return path.join(this.folder, name);
  }

  write(name: string, content: string | Buffer): Promise<void> {
    return writeFile(this.path(name), content);
  }

  remove(name: string): Promise<void> {
    return rm(this.path(name));
  }

  /** `node.crt` and `node.key`, with the roots of `roots/`. */
  options(changed: Partial<CertificateOptions> = {}): CertificateOptions {
    return {
      certificateFile: this.path('node.crt'),
      certificatePrivateKeyFile: this.path('node.key'),
      certificatePassword: null,
      certificatePrivateKeyPassword: null,
      trustedRootCertificatesPath: this.path('roots'),
      certificateReservedNodeCommonName: null,
      ...changed,
    };
  }
}
