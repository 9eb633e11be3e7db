import * as path from 'node:path';
import { restoreBackup } from '../../core/backup/restore/restore.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import type { Anchor } from '../../core/integrity/format/chain-layout.ts';
import { parseAnchor } from '../../core/integrity/format/chain-layout.ts';
import { type ProofSummary, verifyProof } from '../../core/integrity/verify-chain/verify-chain.ts';
import type { ProofFinding, ProofNote } from '../../core/integrity/api.ts';
import { parseEventProof, verifyEvent } from '../../core/integrity/format/event-proof.ts';
import type { Storage } from '../../core/ports/storage.ts';
import { decodeText } from '../../core/base/text.ts';
import { parseTimestamp, timestampText } from '../../core/base/time.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { FilesystemStorage } from '../../infra/fs/filesystem-storage.ts';
import { TemporaryFolder } from '../../infra/fs/file-removal.ts';
import {
  backupIdOf,
  lanesOf,
  placeOf,
  runInterruptibly,
  withRepository,
  withRestoreWorld,
} from '../backup/backup-world.ts';
import type { Input } from '../cli/command.ts';
import { requireDirectory } from '../cli/data-directory.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { coloursFor, counted, EXIT, line, shown } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { followSearch } from '../cli/findings.ts';
import { readAnchors, readText } from '../proof/anchor-file.ts';
import type { proofVerifyOptions } from './options-command.ts';

type Options = Input<typeof proofVerifyOptions>['options'];

/** Compares a directory, a backup or the proof of an event with anchors. */
export async function runProofVerify({ options, given }: Input<typeof proofVerifyOptions>, io: Io): Promise<ExitCode> {
  const places = (['db', 'repository', 'event'] as const).filter((name) => given.has(name));
  if (places.length > 1)
    throw new UsageError(
      'Name a data directory with --db, a repository with --repository or the proof of an event with --event, and only one of them.',
    );
  const unfit =
    options.repository !== null
      ? undefined
      : (['key-file', 's3-endpoint', 's3-region', 'backup'] as const).find((name) => given.has(name));
  if (unfit !== undefined) throw new UsageError(`--${unfit} needs --repository.`);
  if (options.event !== null) return verifyOneEvent(options.event, options, io);
  if (options.anchor === null)
    throw new UsageError('Name the anchor with --anchor FILE: nothing can be verified without one.');
  const anchors = await anchorsOf(options.anchor, options.until);
  if (options.repository !== null) return verifyBackup(anchors, options, io);
  const directory = path.resolve(options.db);
  await requireDirectory(directory);
  try {
    return await report(
      new FilesystemStorage({ root: directory, mustExist: true }),
      anchors,
      { directory },
      options,
      io,
    );
  } catch (error) {
    if (isSkuaError(error, 'file_not_found'))
      throw new CommandError(
        'directory_in_use',
        `${error.message} A node replaced it in the meantime: repeat the command when no scavenge runs. Directory: ${directory}.`,
        EXIT.unreachable,
      );
    throw error;
  }
}

async function anchorsOf(file: string, untilMs: number | null): Promise<readonly Anchor[]> {
  const all = await readAnchors(file);
  const chosen = untilMs === null ? all : all.filter(({ madeAt }) => parseTimestamp(madeAt) <= untilMs);
  if (chosen.length === 0) throw new UsageError(`No anchor in ${file} was made by ${timestampText(untilMs!, 0)}.`);
  return chosen;
}

/** Restores to a folder among the temporary files, which goes again whatever happens. */
async function verifyBackup(anchors: readonly Anchor[], options: Options, io: Io): Promise<ExitCode> {
  const folder = await TemporaryFolder.make('skua-proof-');
  const target = new FilesystemStorage({ root: folder.path, isOffline: true });
  try {
    const restored = await runInterruptibly('The verification was interrupted.', io, ({ signal, progress }) =>
      withRestoreWorld(target, io, (world) =>
        withRepository(placeOf(options.repository, 'repository', options), options, {}, io, async (repository, spec) =>
          restoreBackup({
            ...world,
            signal,
            repository,
            ...lanesOf(world.start.jobs, spec),
            choice:
              options.backup === null
                ? { kind: 'latest' }
                : { kind: 'backup', id: await backupIdOf(repository, options.backup) },
            onProgress: ({ bytesDone, bytesTotal }) => progress.update({ label: 'restoring', bytesDone, bytesTotal }),
          }),
        ),
      ),
    );
    return await report(
      target,
      anchors,
      { repository: options.repository!, backupId: restored.backupId! },
      options,
      io,
    );
  } finally {
    await folder.remove();
  }
}

async function report(
  storage: Storage,
  anchors: readonly Anchor[],
  where: Readonly<Record<string, string>>,
  { json, strict }: Options,
  io: Io,
): Promise<ExitCode> {
  const run = verifyProof({ storage, digests: nodeDigests, anchors, isStrict: strict });
  const summary = await followSearch(
    run,
    io,
    ({ bytesDone, bytesTotal }) => ({ label: 'proving', bytesDone, bytesTotal }),
    (said) => line(io.stdout, json ? JSON.stringify(said) : saidText(said, io)),
  );
  line(
    io.stdout,
    json
      ? JSON.stringify({ kind: 'summary', ...where, ...summary })
      : summaryText(summary, Object.values(where)[0]!, anchors.length, io),
  );
  return summary.findings === 0 ? EXIT.ok : EXIT.failed;
}

function saidText(said: ProofFinding | ProofNote, io: Io): string {
  const { red, dim, bold } = coloursFor(io.stdout, io.env);
  return said.kind === 'note'
    ? `${dim('note   ')} ${shown(said.message)}`
    : `${red('wrong  ')} ${bold(said.code)}: ${shown(said.message)}`;
}

function summaryText(
  { findings, proven, removed, redacted, uncovered, anchors, position, logEnd }: ProofSummary,
  place: string,
  given: number,
  io: Io,
): string {
  const { red, green, yellow } = coloursFor(io.stdout, io.env);
  const verdict = findings === 0 ? green('nothing was changed') : red(`${counted(findings, 'thing')} wrong`);
  const gone =
    removed + redacted === 0
      ? ''
      : ` Scavenges removed ${counted(removed, 'record')}${redacted > 0 ? ` and redacted ${redacted.toLocaleString('en')}` : ''}, according to the receipts.`;
  const behind =
    uncovered === 0
      ? ''
      : ` ${yellow(`Of these, ${counted(uncovered, 'record')} were removed since the newest anchor: no anchor covers their receipts.`)}`;
  const rest = logEnd > position ? ` The log continues to ${logEnd}, which no anchor covers yet.` : '';
  const held =
    anchors === 0
      ? red('No anchor holds, so that nothing is proven.')
      : `${counted(proven, 'record')}${anchors === given ? ` below position ${position}` : ''} are unchanged, by ${anchors} of ${counted(given, 'anchor')}.`;
  return `${place}: ${verdict}. ${held}${gone}${behind}${rest}`;
}

async function verifyOneEvent(file: string, { anchor: anchorFile, until, json }: Options, io: Io): Promise<ExitCode> {
  const text = await readText(file);
  const proof = parseEventProof(text, file);
  const anchors = anchorFile === null ? [anchorWithin(text, file)] : await anchorsOf(anchorFile, until);
  const anchor =
    anchors.findLast(({ position, chain }) => position === proof.anchorPosition && chain === proof.chain) ??
    anchors.at(-1)!;
  const { wrong, event } = verifyEvent(proof, anchor, nodeDigests);
  const isOwn = anchorFile === null;
  if (json) {
    const shown =
      event === null
        ? null
        : {
            stream: event.stream,
            number: event.expectedVersion + 1,
            type: event.eventType,
            id: event.eventId,
            time: timestampText(event.timestampMs, event.timestampTicks),
            data: decodeText(event.data),
            metadata: decodeText(event.metadata),
          };
    line(
      io.stdout,
      JSON.stringify({
        kind: 'summary',
        file,
        position: proof.position,
        isProven: wrong === null,
        anchorIsFromProof: isOwn,
        wrong,
        event: shown,
      }),
    );
    return wrong === null ? EXIT.ok : EXIT.failed;
  }
  const { red, green, yellow } = coloursFor(io.stdout, io.env);
  const what =
    event === null
      ? `the record at position ${proof.position}`
      : `event ${event.expectedVersion + 1} of ${event.stream} (${event.eventType}, ${event.eventId})`;
  if (wrong !== null) line(io.stdout, `${file}: ${red('not proved')}. ${wrong}`);
  else {
    line(
      io.stdout,
      `${file}: ${green('proved')}: ${what}, written at ${event === null ? 'an unknown time' : timestampText(event.timestampMs, event.timestampTicks)}, stands at position ${proof.position} of the log of the anchor made at ${anchor.madeAt}.`,
    );
    if (event !== null) line(io.stdout, decodeText(event.data));
    if (isOwn)
      line(
        io.stdout,
        yellow(
          'The anchor came with the proof. With --anchor, check it against an anchor that the maker of the proof could not change.',
        ),
      );
  }
  return wrong === null ? EXIT.ok : EXIT.failed;
}

/** The anchor that was made with the proof. */
function anchorWithin(text: string, file: string): Anchor {
  const { anchor } = JSON.parse(text) as { anchor?: unknown };
  if (anchor === undefined) throw new UsageError(`${file} has no anchor of its own: name one with --anchor FILE.`);
  return parseAnchor(JSON.stringify(anchor), `The anchor in ${file}`);
}
