import { defineCommand } from '../cli/command.ts';
import { flag, integer, text, texts } from '../cli/options.ts';

/** `skua license ...`: whoever runs nodes can issue licence keys for them. */

const DAYS_MAX = 36_500;
const json = flag('Report as JSON');

export const issuerOptions = { force: flag('Replace files that are there: keys of the former issuer are worth nothing then'), json };

export const licenseIssuerCommand = defineCommand({
  name: 'license issuer',
  summary: 'Make the keys of somebody who issues licence keys',
  details: 'FILE gets the private key, which signs and must stay secret; FILE.pub the public one, which nodes are given with --licensing-issuer-key-file.',
  positionals: [{ name: 'FILE', help: 'file for the private key' }],
  options: issuerOptions,
  examples: [{ line: 'skua license issuer ./issuer.key', does: 'Make issuer.key and issuer.key.pub' }],
  run: async (input, io) => (await import('./run-license.ts')).runLicenseIssuer(input, io),
});

export const issueOptions = {
  days: integer('DAYS', 1, DAYS_MAX, 365, 'Days for which the key is valid'),
  feature: texts('NAME', 'Feature to grant: AUTO_SCAVENGE or ALL; may be given several times. AUTO_SCAVENGE unless given'),
  holder: text('NAME', null, 'Whom the key is for'),
  out: text('FILE', null, 'File for the key', 'standard output'),
  force: flag('Replace the file when it is there'),
  json,
};

export const licenseIssueCommand = defineCommand({
  name: 'license issue',
  summary: 'Issue a licence key',
  details: 'A node takes it with Licensing:LicenseKey, in its configuration file or in the environment as SERVER_LICENSING__LICENSE_KEY.',
  positionals: [{ name: 'FILE', help: 'private key of the issuer' }],
  options: issueOptions,
  examples: [
    { line: 'skua license issue ./issuer.key --days 30', does: 'A key for auto-scavenge' },
    { line: 'skua license issue ./issuer.key --feature ALL --out ./node.license', does: 'A key for everything, into a file' },
  ],
  run: async (input, io) => (await import('./run-license.ts')).runLicenseIssue(input, io),
});

export const inspectOptions = { 'issuer-key': text('FILE', null, 'Public key of the issuer, to verify the signature with'), json };

export const licenseInspectCommand = defineCommand({
  name: 'license inspect',
  summary: 'Show what a licence key grants, and until when',
  details: 'Exit code 1: it grants nothing now, or was not signed by that issuer.',
  positionals: [{ name: 'FILE', help: 'file that holds the key; - for standard input' }],
  options: inspectOptions,
  examples: [{ line: 'skua license inspect ./node.license --issuer-key ./issuer.key.pub', does: 'Also verify who signed it' }],
  run: async (input, io) => (await import('./run-license.ts')).runLicenseInspect(input, io),
});
