import { placeOptions } from '../backup/options.ts';
import { defineCommand } from '../cli/command.ts';
import { flag, text, texts } from '../cli/options.ts';
import { indexOption } from '../scavenge/options.ts';

export const proveErasedOptions = {
  stream: text('NAME', null, 'Look for every event of this stream'),
  event: texts('ID', 'Look for the event with this id; may be given several times'),
  db: text('DIR', './data', 'Data directory to search'),
  index: indexOption,
  ...placeOptions,
  repository: text('R', null, 'Search the backups of this repository instead: a directory, or s3://bucket/prefix'),
  json: flag('One JSON object a line: findings, then the summary'),
};

export const proveErasedCommand = defineCommand({
  name: 'prove-erased',
  summary: 'Search a data directory, or a repository of backups, for what remains of erased events',
  details: 'Searches every byte of every file: chunks, index and scavenge database. Changes nothing, and a node may run meanwhile. Exit code 0: no trace of an event; 1: a trace was found, and the output says where. Residue is what shows that there was a stream but nothing of its events: its name in a tombstone, in metadata or in the scavenge database, and bare index entries; it does not count as a trace. The last event of a stream stays unless the stream is hard-deleted. In a repository every backup is searched, and what was shipped after it; `skua backup prune --erased` removes those that hold erased events.',
  positionals: [{ name: 'ID', help: 'further ids of events', isOptional: true, isRepeated: true }],
  options: proveErasedOptions,
  examples: [
    { line: 'skua prove-erased --stream parcels --db ./data', does: 'Is anything left of the stream?' },
    { line: 'skua prove-erased --stream parcels --repository ./backups', does: 'Is anything left of it in the backups?' },
    { line: 'skua prove-erased --event 9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4 --json', does: 'Is anything left of the event? For a program' },
  ],
  run: async (input, io) => (await import('./run-prove-erased.ts')).runProveErased(input, io),
});
