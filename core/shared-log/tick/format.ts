import { type FileFormat, jsonParts } from '../../ports/file-format.ts';

/** The notes of a log in a bucket that ask something of ticks, for inspection. */
export const TICK_FORMATS: readonly FileFormat[] = [
  {
    kind: 'control-note',
    title: 'request to ticks',
    names: [
      /(?<=^|\/)control\/(?:backup|(?:start|stop)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/,
    ],
    parts: (looked) => jsonParts(looked, 'manifest_invalid'),
  },
];
