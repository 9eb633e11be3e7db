/** The path before ours under which a proxy has the node, as this script's own address has it: `/db`, or nothing. */
export const PREFIX = new URL('../..', import.meta.url).pathname.slice(0, -1);

/** A path that the node has sent, as it knows it: proxies that tell it of the prefix get it in their links. */
export function withoutPrefix(path: string): string {
  return PREFIX !== '' && path.startsWith(`${PREFIX}/`) ? path.slice(PREFIX.length) : path;
}
