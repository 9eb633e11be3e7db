import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { YAML_LENGTH_MAX } from './yaml.ts';

/** The text of a configuration file; null where there is none. Anything but a regular file of moderate size is refused. */
export function readConfigFile(path: string): string | null {
  let file: number;
  try {
    // Without waiting for the other end of a pipe.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const found = fstatSync(file);
    if (!found.isFile()) throw new Error('it is no file');
    if (found.size > YAML_LENGTH_MAX) throw new Error(`it has ${found.size} bytes, and a configuration file has at most ${YAML_LENGTH_MAX}`);
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}
