import { readFileSync } from 'node:fs';
import { ROOT } from './spawn.ts';

/** A command of a block of the README, and lines that its output has to have: the comments behind it. */
export interface Step {
  readonly section: string;
  readonly language: string;
  readonly command: string;
  readonly expected: readonly string[];
  /** Variables that the text before it exports. */
  readonly exported: Readonly<Record<string, string>>;
}

/** Every command of every block, in order. */
export function readmeSteps(text = readFileSync(`${ROOT}/README.md`, 'utf8')): Step[] {
  return text.split(/^## /m).flatMap((part) => {
    const section = part.split('\n', 1)[0]!;
    let exported: Record<string, string> = {};
    return part.split(/^(```[\s\S]*?^```)$/m).flatMap((piece) => {
      if (piece.startsWith('```')) return stepsOf(piece, { section, exported });
      for (const [, variables] of piece.matchAll(/`export\s+([^`]+)`/g))
        exported = {
          ...exported,
          ...Object.fromEntries(
            variables!
              .trim()
              .split(/\s+/)
              .map((each) => each.split('=', 2) as [string, string]),
          ),
        };
      return [];
    });
  });
}

function stepsOf(block: string, of: Pick<Step, 'section' | 'exported'>): Step[] {
  const [first, ...lines] = block.split('\n');
  const language = first!.slice(3);
  // Programs are run by a test of their own.
  if (language === 'js') return [];
  const steps: { command: string; expected: string[] }[] = [];
  let isOpen = false;
  for (const line of lines.slice(0, -1)) {
    if (line === '') continue;
    if (line.startsWith('# ')) {
      // In a console's block comments explain.
      if (language === 'sh') steps.at(-1)!.expected.push(line.slice(2));
      continue;
    }
    if (isOpen) steps.at(-1)!.command += `\n${line}`;
    else steps.push({ command: line, expected: [] });
    isOpen = line.endsWith('\\') || (isOpen && line.endsWith(','));
  }
  return steps.map((step) => ({ ...of, language, ...step }));
}
