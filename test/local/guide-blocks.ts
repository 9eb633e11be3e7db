import { readdirSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { ROOT } from './spawn.ts';

/** The README or a page of the guide. */
export interface Page {
  /** Path in this repository. */
  readonly file: string;
  readonly text: string;
}

/** A command of a block, and lines that its output has to have: the comments behind it. */
export interface Step {
  readonly section: string;
  readonly language: string;
  readonly command: string;
  readonly expected: readonly string[];
  /** Variables that blocks before it on the page export. */
  readonly exported: Readonly<Record<string, string>>;
}

/** A block that is a whole program, or a file of tests. */
export interface Program {
  readonly page: string;
  readonly language: string;
  readonly code: string;
  /** The modules that it imports. */
  readonly modules: readonly string[];
  /** What it prints: the comments behind its calls of `console.log`. */
  readonly expected: readonly string[];
}

/** Languages of the blocks whose commands are run: in `sh` comments are output, in `console` they explain. */
const COMMANDS = ['sh', 'console'];
/** Languages of the blocks that are programs. */
const PROGRAMS = ['js', 'ts'];
/** What blocks may be besides: something to look at. */
const SHOWN = ['text', 'yaml', 'json', 'ini'];
export const LANGUAGES: readonly string[] = [...COMMANDS, ...PROGRAMS, ...SHOWN];

const BLOCK = /^```(\w*)\n([^]*?)^```$/gm;
export const GUIDE = 'local/guide';

/** Names of pages that are tested elsewhere, and where. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  example: 'It shows parts of the application in test/examples, which has tests of its own.',
};

export function isTestedElsewhere({ file }: Page): boolean {
  return Object.hasOwn(ELSEWHERE, path.basename(file, '.md'));
}

/** The README, and then the pages of the guide. */
export function pages(): readonly Page[] {
  const guide = readdirSync(`${ROOT}/${GUIDE}`).filter((name) => name.endsWith('.md'));
  return ['README.md', ...guide.sort().map((name) => `${GUIDE}/${name}`)].map((file) => ({
    file,
    text: readFileSync(`${ROOT}/${file}`, 'utf8'),
  }));
}

/** The languages of a page's blocks. */
export function languagesOf({ text }: Page): string[] {
  return [...text.matchAll(BLOCK)].map(([, language]) => language!);
}

/** Every command of every block of a page, in order. */
export function stepsOf({ text }: Page): Step[] {
  let exported: Step['exported'] = {};
  return text.split(/^## /m).flatMap((part, i) => {
    const section = i === 0 ? '' : part.split('\n', 1)[0]!;
    return [...part.matchAll(BLOCK)].flatMap(([, language, block]) =>
      COMMANDS.includes(language!)
        ? commandsOf(block!, language!).flatMap((step) => {
            if (!step.command.startsWith('export ')) return [{ ...step, section, language: language!, exported }];
            exported = { ...exported, ...variablesOf(step.command) };
            return [];
          })
        : [],
    );
  });
}

function variablesOf(command: string): Record<string, string> {
  const words = command.split(/\s+/).slice(1);
  return Object.fromEntries(words.map((word) => word.split('=', 2) as [string, string]));
}

function commandsOf(block: string, language: string): Pick<Step, 'command' | 'expected'>[] {
  const steps: { command: string; expected: string[] }[] = [];
  let isOpen = false;
  for (const line of block.split('\n')) {
    if (line === '') continue;
    if (line.startsWith('# ')) {
      if (language === 'sh') steps.at(-1)!.expected.push(line.slice(2));
      continue;
    }
    if (isOpen) steps.at(-1)!.command += `\n${line}`;
    else steps.push({ command: line, expected: [] });
    isOpen = line.endsWith('\\') || (isOpen && line.endsWith(','));
  }
  return steps;
}

/** The programs of a page. */
export function programsOf({ file, text }: Page): Program[] {
  return [...text.matchAll(BLOCK)]
    .filter(([, language]) => PROGRAMS.includes(language!))
    .map(([, language, code]) => ({
      page: file,
      language: language!,
      code: code!,
      modules: [...code!.matchAll(/^import .* from '([^']+)';$/gm)].map(([, name]) => name!),
      expected: [...code!.matchAll(/\bconsole\.log\(.*\);? \/\/ (.+)$/gm)].map(([, line]) => line!),
    }));
}

/** The program of a page that imports all of these modules. */
export function programOf(file: string, ...modules: readonly string[]): Program {
  const found = programsOf(pages().find((page) => page.file === file)!).find((program) =>
    modules.every((name) => program.modules.includes(name)),
  );
  if (found === undefined) throw new Error(`${file} has no program that imports ${modules.join(' and ')}.`);
  return found;
}
