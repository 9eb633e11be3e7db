import { open } from 'node:fs/promises';
import { encodeText } from '../../core/base/text.ts';
import type { MarkColumns } from '../../core/streams/api.ts';
import { decodeMark, type Mark } from '../../core/streams/format/marks.ts';
import { ALL_MARKS } from '../../core/streams/format/mark-columns.ts';
import { MARKS_MAX, Redactions } from '../../core/streams/redactions/redactions.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';

/**
 * The marks of redaction in a file of lines of JSON, as a node gives its stream `$redactions`. Errors:
 * `file_unreadable`, `invalid_mark` for a line that is none, `redactions_full`.
 */
export async function readRedactions(file: string): Promise<MarkColumns> {
  const marks = new Redactions();
  let number = 0;
  try {
    await using handle = await open(file);
    for await (const text of handle.readLines({ autoClose: false })) {
      number++;
      if (text.trim() === '') continue;
      const mark = markIn(text);
      if (mark === null)
        throw new CommandError(
          'invalid_mark',
          `Line ${number} of ${file} is no redaction. The file must hold what GET /streams/%24redactions returns with 'Accept: application/x-ndjson'.`,
          EXIT.failed,
        );
      if (marks.count === MARKS_MAX)
        throw new CommandError('redactions_full', `${file} has more than ${MARKS_MAX} redactions.`, EXIT.failed);
      marks.add(mark, 0);
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      'file_unreadable',
      `${file} can't be read (${(error as NodeJS.ErrnoException).code ?? String(error)}). Name an existing file that can be read.`,
      EXIT.unreachable,
    );
  }
  return marks.columns(...ALL_MARKS);
}

/** The data of an event stand in its line as text. */
function markIn(line: string): Mark | null {
  try {
    const { data } = JSON.parse(line) as { readonly data?: unknown };
    return decodeMark(encodeText(typeof data === 'string' ? data : (JSON.stringify(data) ?? '')));
  } catch {
    return null;
  }
}
