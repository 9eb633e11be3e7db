import { readFile } from 'node:fs/promises';
import { type Anchor, parseAnchor } from '../../core/integrity/format/chain-layout.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';

/** All anchors of a file: one document, or one on each line. Throws `proof_invalid` where one of them is none. */
export async function readAnchors(file: string): Promise<readonly Anchor[]> {
  const text = (await readText(file)).trim();
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  // A document that was formatted over several lines is one anchor all the same.
  if (lines.length > 1 && !lines[0]!.trimEnd().endsWith('}')) return [parseAnchor(text, file)];
  return lines.length === 0
    ? [parseAnchor(text, file)]
    : lines.map((line, i) => parseAnchor(line, lines.length === 1 ? file : `Line ${i + 1} of ${file}`));
}

/** The text of a file that a user names. */
export async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandError('file_not_readable', `${file} can't be read: ${(error as Error).message}`, EXIT.unreachable);
  }
}
