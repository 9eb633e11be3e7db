import { defineCommand } from '../cli/command.ts';
import { proofExportOptions, proofVerifyOptions } from './options.ts';

/** `skua proof ...`: proof that nothing of a log was changed since an anchor was put away. */

export const proofExportCommand = defineCommand({
  name: 'proof export',
  summary: 'Write an anchor for a stopped directory, or the proof of one event',
  details: 'An anchor is a small JSON document with one hash over all records of the log. Keep it where nobody who reaches the directory can change it: by it `skua proof verify` finds every record that was changed, removed, moved or added since. A directory that has no chain of hashes yet gets one, in its folder proofs, which scavenges then keep up. A running node exports anchors by itself, with --proof-chain and --proof-anchor. The proof of an event holds its record and the hashes from there to an anchor; whoever has both needs neither node nor directory to be convinced.',
  options: proofExportOptions,
  examples: [
    { line: 'skua proof export --db ./data --out anchor.json', does: 'Make an anchor' },
    { line: 'skua proof export --event orders-7/0 --anchor anchor.json --out event.json', does: 'Prove one event by it' },
  ],
  run: async (input, io) => (await import('./run-proof-export.ts')).runProofExport(input, io),
});

export const proofVerifyCommand = defineCommand({
  name: 'proof verify',
  summary: 'Prove that no record was changed, removed, moved or added since an anchor was made',
  details: 'Reads all records below the position of the anchor, and changes nothing. What scavenges removed is told by receipts in the folder proofs, whose hash an anchor covers as well; receipts behind the newest anchor are let pass and counted, unless --strict is given. Where anchors are given line by line, each has to hold. Other bytes than those of records are for `skua verify`. Exit code 0: all is as it was; 1: something is not, and the output says what; 3: the directory or the repository can\'t be read.',
  options: proofVerifyOptions,
  examples: [
    { line: 'skua proof verify --db ./data --anchor anchor.json', does: 'Look at a directory' },
    { line: 'skua proof verify --repository ./backups --anchor anchors.jsonl', does: 'Look at the newest backup' },
    { line: 'skua proof verify --event event.json --anchor anchor.json', does: 'Look at the proof of one event' },
  ],
  run: async (input, io) => (await import('./run-proof-verify.ts')).runProofVerify(input, io),
});
