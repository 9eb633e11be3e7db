import { defineCommand } from '../cli/command.ts';
import { proofExportOptions, proofVerifyOptions } from './options-command.ts';

/** `skua proof ...`: proof that nothing of a log was changed since an anchor was put away. */

export const proofExportCommand = defineCommand({
  name: 'proof export',
  summary: 'Write an anchor for a stopped directory, or the proof of one event',
  details:
    'An anchor is a small JSON document with one hash over all records of the log. Keep it where no one with access to the directory can change it: with it, `skua proof verify` finds every record that was changed, removed, moved or added since. A directory without a hash chain gets one, in its folder proofs, and scavenges keep it up to date. A running node exports anchors itself, with --proof-chain and --proof-anchor. The proof of an event holds its record and the hashes from there to an anchor; with both, neither node nor directory is needed to verify it.',
  options: proofExportOptions,
  examples: [
    { line: 'skua proof export --db ./data --out anchor.json', does: 'Create an anchor' },
    {
      line: 'skua proof export --event orders-7/0 --anchor anchor.json --out event.json',
      does: 'Prove one event with it',
    },
  ],
  run: async (input, io) => (await import('./run-proof-export.ts')).runProofExport(input, io),
});

export const proofVerifyCommand = defineCommand({
  name: 'proof verify',
  summary: 'Prove that no record was changed, removed, moved or added since an anchor was made',
  details:
    "Reads all records below the position of the anchor and changes nothing. Receipts in the folder proofs record what scavenges removed, and an anchor covers their hash too; receipts after the newest anchor are accepted and counted, unless --strict is given. If the file has several anchors, each must hold. `skua verify` checks the bytes outside records. Exit code 0: nothing was changed; 1: something was, and the output says what; 3: the directory or the repository can't be read.",
  options: proofVerifyOptions,
  examples: [
    { line: 'skua proof verify --db ./data --anchor anchor.json', does: 'Verify a directory' },
    { line: 'skua proof verify --repository ./backups --anchor anchors.jsonl', does: 'Verify the newest backup' },
    { line: 'skua proof verify --event event.json --anchor anchor.json', does: 'Verify the proof of one event' },
  ],
  run: async (input, io) => (await import('./run-proof-verify.ts')).runProofVerify(input, io),
});
