import { isSkuaError } from '../../core/base/errors.ts';
import {
  type Damage,
  damageOf,
  type Part,
  type RecordPart,
  type RecordPosition,
} from '../../core/ports/file-format.ts';
import { listAll } from '../../core/ports/object-store.ts';
import type { Input } from '../cli/command.ts';
import { CommandError, describeFailure, UsageError } from '../../infra/runtime/failure.ts';
import { counted, EXIT, shown } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { readKeyFile } from '../cli/key-files.ts';
import { bytesText } from '../cli/progress.ts';
import { allFormats, formatByName } from '../inspect/formats.ts';
import { type NamedFile, type NamedFolder, openNamed } from '../inspect/inspected-location.ts';
import { Printer } from '../inspect/print.ts';
import type { inspectOptions } from './options-command.ts';

type Options = Input<typeof inspectOptions>['options'];

/** Shows what is in a file, an object, or a folder of them. */
export async function runInspect({ options, positionals }: Input<typeof inspectOptions>, io: Io): Promise<ExitCode> {
  const key = options['key-file'] === null ? null : await readKeyFile(options['key-file']);
  const named = await openNamed(positionals[0]!, options, key);
  try {
    if (named.kind === 'file') return await inspectFile(named, options, io);
    if (options.at !== null) throw new UsageError(`${named.place} is a folder: --at is for a single file.`);
    return await inspectFolder(named, options, io);
  } finally {
    await named.close();
  }
}

async function inspectFile(named: NamedFile, options: Options, io: Io): Promise<ExitCode> {
  const { format, file, place, key, localPath, world, isUnfinished } = named;
  if (format === null) {
    const titles = [...new Set((await allFormats()).map(({ title }) => title))].sort();
    throw new CommandError(
      'unknown_format',
      `${place} is not a known kind of file, by its name or its first bytes. Known kinds: ${titles.join(', ')}.`,
      EXIT.refused,
    );
  }
  const printer = new Printer(io, options);
  printer.object({
    kind: 'file',
    file: place,
    format: format.kind,
    title: format.title,
    sizeBytes: file.size,
    isUnfinished,
  });
  printer.text(
    `${shown(place)}: ${format.title}${isUnfinished ? ', not finished or no longer in use' : ''}, ${bytesText(file.size)}`,
  );
  const found = new Found(printer, options);
  try {
    for await (const part of format.parts({ key, file, localPath, at: options.at, world })) if (found.take(part)) break;
  } catch (error) {
    found.damage(damageOf(error, null));
  }
  return found.end(place);
}

/** What was found so far, and what of it is shown. */
class Found {
  readonly #printer: Printer;
  readonly #options: Options;
  #records = 0;
  #damage: Damage | null = null;
  #damages = 0;
  #isFound = false;
  /** The last record before the place that is wanted. */
  #before: { readonly position?: number; readonly offset: number | null } | null = null;

  constructor(printer: Printer, options: Options) {
    this.#printer = printer;
    this.#options = options;
  }

  /** True when nothing more is wanted. */
  take(part: Part): boolean {
    const { at } = this.#options;
    if (part.kind === 'damage') this.damage(part);
    else if (part.kind === 'record') return at === null ? this.#record(part) : this.#wanted(part, at);
    else if (at === null && part.kind === 'section') this.#printer.section(part.title, part.fields);
    else if (at === null && part.kind === 'note') this.#printer.note(part.message);
    return false;
  }

  #record(record: RecordPart): false {
    this.#records++;
    const { limit } = this.#options;
    if (limit === 0 || this.#records <= limit) this.#printer.row(record);
    return false;
  }

  #wanted(record: RecordPart, { by, value }: RecordPosition): boolean {
    const place = by === 'position' && record.position !== undefined ? record.position : record.offset;
    if (place === null || place > value) return false;
    if (place < value) {
      this.#before = { offset: record.offset, ...(record.position !== undefined && { position: record.position }) };
      return false;
    }
    this.#printer.whole(record);
    this.#isFound = true;
    return true;
  }

  damage(damage: Damage): void {
    this.#damage ??= damage;
    this.#damages++;
    if (this.#options.at === null) this.#printer.damage(damage);
  }

  end(place: string): ExitCode {
    const { at, limit } = this.#options;
    const printer = this.#printer;
    printer.flush();
    if (at !== null && this.#isFound) return EXIT.ok;
    if (at !== null) throw this.#absent(at, place);
    const more = limit === 0 ? 0 : Math.max(0, this.#records - limit);
    if (more > 0) printer.text(`… and ${counted(more, 'more record')}; --limit 0 shows all of them, --at one.`);
    printer.object({
      kind: 'summary',
      records: this.#records,
      shown: this.#records - more,
      damages: this.#damages,
      ...(this.#damage !== null && { firstDamage: { offset: this.#damage.offset, code: this.#damage.error.code } }),
    });
    printer.text();
    const wrong = this.#damage === null ? 'nothing wrong found' : counted(this.#damages, 'damaged place');
    printer.text(
      this.#records === 0
        ? `${wrong.slice(0, 1).toUpperCase()}${wrong.slice(1)}.`
        : `${counted(this.#records, 'record')}, ${wrong}.`,
    );
    if (this.#damage === null) return EXIT.ok;
    const { offset, error } = this.#damage;
    if (this.#options.json) return describeFailure(error).exitCode;
    throw new CommandError(
      error.code,
      `${place} is damaged${offset === null ? '' : ` at offset ${offset}`}${this.#damages > 1 ? `, the first of ${this.#damages} places` : ''}: ${error.message}`,
      describeFailure(error).exitCode,
    );
  }

  #absent({ by, value }: RecordPosition, place: string): CommandError {
    const before = this.#before;
    const known =
      before === null
        ? ''
        : ` The last one before it is at ${before.position === undefined ? '' : `position ${before.position}${before.offset === null ? '' : ', '}`}${before.offset === null ? '' : `offset ${before.offset}`}.`;
    const damage =
      this.#damage === null
        ? ''
        : ` The file is damaged${this.#damage.offset === null ? '' : ` at offset ${this.#damage.offset}`}: ${this.#damage.error.message}`;
    return new CommandError(
      'record_not_found',
      `No record begins at ${by} ${value} in ${place}.${known}${damage}`,
      EXIT.failed,
    );
  }
}

/** The files of a folder, each with its kind by name; of checkpoints what they say. */
async function inspectFolder({ objects, place }: NamedFolder, options: Options, io: Io): Promise<ExitCode> {
  const printer = new Printer(io, options);
  printer.object({ kind: 'folder', folder: place });
  printer.text(`${shown(place)}: a folder`);
  let files = 0;
  let bytes = 0;
  for await (const { key, sizeBytes, modifiedMs } of listAll(objects, '')) {
    files++;
    bytes += sizeBytes;
    if (options.limit !== 0 && files > options.limit) continue;
    const format = (await formatByName(key))?.format ?? null;
    const says = format?.kind === 'checkpoint' ? await checkpointText(objects, key) : null;
    printer.row({
      kind: 'record',
      group: 'files',
      offset: null,
      describe: () => ({ fields: { name: key, sizeBytes, modifiedMs, kind: format?.kind ?? 'unknown', says } }),
    });
  }
  printer.flush();
  if (files === 0 && place.includes('://'))
    throw new CommandError('file_not_found', `There is no object ${place}, and none below it.`, EXIT.unreachable);
  const more = options.limit === 0 ? 0 : Math.max(0, files - options.limit);
  if (more > 0) printer.text(`… and ${counted(more, 'more file')}; --limit 0 shows all of them.`);
  printer.object({ kind: 'summary', records: files, shown: files - more, bytes });
  printer.text();
  printer.text(`${counted(files, 'file')}, ${bytesText(bytes)}. Name one of them to see what is in it.`);
  return EXIT.ok;
}

/** The number that a checkpoint holds; null for one that holds none. */
async function checkpointText(objects: NamedFolder['objects'], key: string): Promise<string | null> {
  try {
    const bytes = await objects.get(key, { from: 0, length: 8 });
    return bytes?.length === 8 ? String(new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(0, true)) : null;
  } catch (error) {
    if (isSkuaError(error)) return null;
    throw error;
  }
}
