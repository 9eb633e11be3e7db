import { type FileFormat, jsonParts } from '../../ports/file-format.ts';

/** By which members of a cluster find each other, for inspection. */
export const MEMBERSHIP_FORMATS: readonly FileFormat[] = [
  {
    kind: 'member',
    title: 'registration of a cluster member',
    names: [/(?<=^|\/)nodes\/[A-Za-z0-9._-]{1,250}_3a\d{1,5}$/],
    parts: (looked) => jsonParts(looked, 'bad_json'),
  },
];
