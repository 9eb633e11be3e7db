import type { Io, Output } from './io.ts';

export interface Colours {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
}

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 };

/** Colours for a terminal; plain text for everything else, and where `NO_COLOR` is set (no-color.org). */
export function coloursFor(output: Output, env: Io['env']): Colours {
  const isOn = output.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  const paint = (code: number) => (text: string) => (isOn ? `\u001B[${code}m${text}\u001B[0m` : text);
  return { bold: paint(codes.bold), dim: paint(codes.dim), red: paint(codes.red), green: paint(codes.green), yellow: paint(codes.yellow) };
}
