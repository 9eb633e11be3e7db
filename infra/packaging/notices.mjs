// The licences of what is inside the bundles, which have to go along with it.
import { readdir, readFile } from 'node:fs/promises';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Name, version and licence of each package that one of `sources` belongs to, with the text of its licence where the
 * package has one.
 */
export async function noticesOf(sources) {
  const folders = [...new Set(sources.map(packageFolderOf).filter((folder) => folder !== null))].sort();
  const names = new Map();
  for (const [name, text] of await Promise.all(folders.map(noticeOf)))
    names.set(text, [...(names.get(text) ?? []), name]);
  // Packages of one owner have the same text, each its own copy of it.
  const notices = [...names].map(([text, of]) => `${'='.repeat(80)}\n${of.join('\n')}\n${text}`);
  return `This package contains the following software.\n\n${notices.join('\n')}`;
}

/** `node_modules/@a/b` of a path in it, that of the innermost package; null for a file of our own. */
function packageFolderOf(source) {
  const at = source.lastIndexOf('node_modules/');
  if (at < 0) return null;
  const words = source.slice(at).split('/');
  return source.slice(0, at) + words.slice(0, words[1].startsWith('@') ? 3 : 2).join('/');
}

async function noticeOf(folder) {
  const at = path.resolve(ROOT, folder);
  const { name, version, license } = JSON.parse(await readFile(path.join(at, 'package.json'), 'utf8'));
  const files = (await readdir(at)).filter((file) => /^(?:licen[cs]e|notice)/i.test(file)).sort();
  const texts = await Promise.all(files.map((file) => readFile(path.join(at, file), 'utf8')));
  return [`${name} ${version}: ${license}`, texts.map((text) => `\n${text.trim()}\n`).join('')];
}
