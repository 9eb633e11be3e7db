import { randomBytes, randomUUID } from 'node:crypto';
import * as path from 'node:path';
import { makePlaces, placesOf, TryOutMember } from '../cluster/try-out.ts';
import type { MemberLocation } from '../cluster/try-out.ts';
import { refuseFile } from '../cli/data-directory.ts';
import { refuseNodeData } from '../../infra/fs/strangers.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { coloursFor, EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { commandName } from '../cli/started-by.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import { VERSION } from '../../infra/runtime/version.ts';
import type { clusterTryOptions } from './options-command.ts';

const SECRET_BYTES = 32;

/** Runs members over a log in a directory until Ctrl+C, or until none of them runs any more. */
export async function runClusterTry({ options }: Input<typeof clusterTryOptions>, io: Io): Promise<ExitCode> {
  const root = path.resolve(options.db);
  await refuseFile(root, '--db');
  await refuseNodeData(root);
  await makePlaces(root);
  const places = await placesOf(root, options.members, options.port);
  const storage = path.join(root, 'log');
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  const interrupt = listenForInterrupt('', io);
  const members = places.map(
    (place) => new TryOutMember({ place, storage, clusterSize: options.members, secret, env: io.env }),
  );
  // Whatever ends this process, no member stays behind; only SIGKILL leaves no time for that.
  const killAll = () => {
    for (const member of members) member.kill();
  };
  process.on('exit', killAll);
  const interrupted = new Promise<void>((resolve) => {
    interrupt.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  try {
    await Promise.race([Promise.all(members.map((member) => startedOrFailed(member, io))), interrupted]);
    if (!interrupt.signal.aborted) {
      banner(members, storage, io);
      await Promise.race([
        Promise.all(members.map((member, i) => toldOfEnd(member, i, interrupt.signal, io))),
        interrupted,
      ]);
      if (!interrupt.signal.aborted)
        throw new CommandError('members_ended', `All members have exited. Their logs are in ${root}.`, EXIT.failed);
    }
    if (io.stdout.isTTY === true) line(io.stdout, '\nStopping; press Ctrl+C again to stop immediately.');
    await stopAll(members);
    line(io.stdout, `All members have stopped. Their data stays in ${shownPath(root)}.`);
    return EXIT.ok;
  } finally {
    await stopAll(members);
    process.off('exit', killAll);
    interrupt.release();
  }
}

async function startedOrFailed(member: TryOutMember, io: Io): Promise<void> {
  if ((await member.started) !== null) return;
  const code = await member.ended;
  line(io.stderr, member.lastLines());
  throw new CommandError(
    'member_failed',
    `A member did not start (exit ${code}): see its output above. Its log: ${member.place.logFile}`,
    EXIT.failed,
  );
}

async function toldOfEnd(member: TryOutMember, i: number, signal: AbortSignal, io: Io): Promise<void> {
  const how = await member.ended;
  if (!signal.aborted)
    line(
      io.stdout,
      `Member ${i + 1} (${member.url}) has exited: ${typeof how === 'number' ? `exit code ${how}` : how}. The others keep running; its log is ${shownPath(member.place.logFile)}.`,
    );
}

/** One after the other, the last one first: of several that lead in turn each has a member to resign to. */
async function stopAll(members: readonly TryOutMember[]): Promise<void> {
  for (const member of members.toReversed()) await member.stop();
}

function banner(members: readonly TryOutMember[], storage: string, io: Io): void {
  const { bold, dim } = coloursFor(io.stdout, io.env);
  const [first, second, third] = [members[0]!, members[1] ?? members[0]!, members[2] ?? members[0]!].map(
    ({ url }) => url!,
  ) as [string, string, string];
  const event = `[{"eventId":"${randomUUID()}","eventType":"letter-posted","data":{"to":"Oslo"}}]`;
  const curl = 'curl -u admin:changeit';
  line(
    io.stdout,
    [
      `Skua ${VERSION}: ${members.length === 1 ? 'one member' : `a cluster of ${members.length} members`} over the log in ${shownPath(storage)}`,
      '',
      ...members.map(({ url, pid, place }) => `${bold(url!)}  ${placeText(place)}, process ${pid}`),
      '',
      dim('# append at one member, read at another, and follow a third (changeit is the password of a first start)'),
      `${curl} -i ${second}/streams/letters -H 'Content-Type: application/vnd.eventstore.events+json' -d '${event}'`,
      `${curl} -i ${third}/streams/letters/head`,
      `${curl} -N ${first}/streams/letters -H 'Accept: text/event-stream'`,
      dim('# see the leader and the lag of the others; then kill -9 the process of the leader, and look again'),
      `${commandName(io.env)} cluster status --node ${first} --watch`,
      '',
      dim('Ctrl+C stops all.'),
    ].join('\n'),
  );
}

function placeText({ db, logFile }: MemberLocation): string {
  return `data ${shownPath(db)}, log ${shownPath(logFile)}`;
}

/** Below the folder that the command runs in without the way to that. */
function shownPath(file: string): string {
  const relative = path.relative(process.cwd(), file);
  return relative === '' || relative.startsWith('..') ? file : `./${relative}`;
}
