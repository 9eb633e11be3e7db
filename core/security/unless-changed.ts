import { SkuaError } from '../base/errors.ts';
import type { Authorize, UnchangedStream } from '../streams/api.ts';

/** Lets a write take its place only while none of these streams, nor its metadata, was written to since. Errors of the write: `wrong_expected_version`. */
export function unlessChanged(unchanged: readonly UnchangedStream[]): Authorize {
  const authorize: Authorize = (_, endOf) => {
    for (const { stream, lastEventNumber, metadataVersion } of unchanged) {
      const end = endOf(stream);
      if (end === null || end.lastEventNumber !== lastEventNumber || end.metadataVersion !== metadataVersion) return changed(stream, lastEventNumber, end?.lastEventNumber ?? lastEventNumber);
    }
    return null;
  };
  return Object.assign(authorize, { unchanged });
}

export function changed(stream: string, expected: number, actual: number): SkuaError {
  return new SkuaError('wrong_expected_version', `${stream} has been changed: read it and decide again.`, { stream, expected, actual });
}
