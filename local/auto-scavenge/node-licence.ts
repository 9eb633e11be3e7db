import { readFile } from 'node:fs/promises';
import * as path from 'node:path';
import type { Keys } from '../../core/ports/keys.ts';
import { licenceOf } from '../../core/security/licence.ts';
import type { Licence, LicenceConfig } from '../../core/security/licence.ts';
import type { Values } from '../config/options.ts';

/** The licence that the options of a node amount to. */
export async function nodeLicence(values: Pick<Values, 'Licensing:LicenseKey' | 'Licensing:IssuerKeyFile' | 'Licensing:UseBuiltIn'>, keys: Keys): Promise<Licence> {
  const key = values['Licensing:LicenseKey'];
  return licenceOf({ key, issuerKey: key === null ? null : await issuerKeyOf(values['Licensing:IssuerKeyFile']), useBuiltIn: values['Licensing:UseBuiltIn'] }, keys);
}

async function issuerKeyOf(file: string | null): Promise<LicenceConfig['issuerKey']> {
  if (file === null) return null;
  try {
    return { pem: await readFile(path.resolve(file), 'utf8') };
  } catch (error) {
    return { unreadable: `${file} (${(error as NodeJS.ErrnoException).code ?? String(error)}).` };
  }
}
