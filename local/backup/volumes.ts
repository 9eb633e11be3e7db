import { stat } from 'node:fs/promises';
import * as path from 'node:path';
import { CommandError } from '../cli/failure.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { nodeOf } from '../cli/node-option.ts';
import { AnswerError, expectStatus, NodeClient } from '../node-client.ts';
import type { SourceWish } from './source.ts';

/** The node's folders are looked at on this machine, so it has to run here. */
const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

interface Folders { readonly db: string; readonly index: string }

/**
 * Says in which order disk snapshots have to be taken (rule 5 of the interface document): one of both folders at once where they
 * are on one volume, else the index first, so that it never knows more than the log. Exit code 1 when that can't be told.
 */
export async function checkVolumes(wish: SourceWish & { readonly json: boolean }, io: Io): Promise<ExitCode> {
  const folders = wish.db === null ? await foldersOfNode(new NodeClient(nodeOf(wish.node, io), io.env)) : { db: path.resolve(wish.db), index: path.resolve(wish.index ?? path.join(wish.db, 'index')) };
  const [db, index] = [await volumeOf(folders.db), await volumeOf(folders.index)];
  const isOneVolume = db === index;
  const order = isOneVolume ? [folders.db] : [folders.index, folders.db];
  if (wish.json) {
    line(io.stdout, JSON.stringify({ db: folders.db, index: folders.index, isOneVolume, order }));
    return EXIT.ok;
  }
  line(io.stdout, `db:    ${folders.db}`);
  line(io.stdout, `index: ${folders.index}`);
  line(io.stdout, isOneVolume ? 'Both are on one volume: take one snapshot of it. A node may run, and a scavenge too.'
    : 'They are on two volumes. Take a snapshot of the index volume first, then one of the db volume. A node may run, and a scavenge too.');
  line(io.stdout, 'To restore, copy both back into the directories of a stopped node, then copy chaser.chk over truncate.chk: `skua restore --from DIR` does that.');
  return EXIT.ok;
}

async function volumeOf(folder: string): Promise<number> {
  try {
    return (await stat(folder)).dev;
  } catch (error) {
    throw new CommandError('volume_unknown', `${folder} can't be looked at (${(error as NodeJS.ErrnoException).code ?? String(error)}), so it can't be told on which volume it is. Run the command on the machine of the node, as a user who may read its folders, with --db DIR.`, EXIT.failed);
  }
}

/** By the node's own options, which name folders of the machine that it runs on. */
async function foldersOfNode(node: NodeClient): Promise<Folders> {
  const unknown = () => new CommandError('volume_unknown', 'The node does not say where its folders are. Run the command on its machine with --db DIR, and --index DIR where the index has a folder of its own.', EXIT.failed);
  let options: readonly { readonly name: string; readonly value: string | null }[];
  try {
    options = JSON.parse(await expectStatus(await node.call('GET', '/info/options'), [200], 'reading the options of the node')) as typeof options;
  } catch (error) {
    if (error instanceof AnswerError && error.exitCode === EXIT.failed) throw unknown();
    throw error;
  }
  if (!LOOPBACK.has(new URL(node.base).hostname)) throw unknown();
  const valueOf = (name: string) => options.find((option) => option.name.toLowerCase() === name)?.value || null;
  const db = valueOf('db');
  const index = valueOf('index') ?? (db === null ? null : path.join(db, 'index'));
  // A relative path is meant from where the node was started, which is not known here.
  if (db === null || index === null || !path.isAbsolute(db) || !path.isAbsolute(index) || valueOf('memdb')?.toLowerCase() === 'true') throw unknown();
  return { db, index };
}
