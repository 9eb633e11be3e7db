/** Longest part of a text that a message repeats. */
const SHOWN_LENGTH_MAX = 200;

/** What somebody wrote, as a message repeats it: on one line, and not without end. */
export function shown(text: string): string {
  const short = text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
  return short.replaceAll(/\p{Cc}/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
