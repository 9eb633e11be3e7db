// What Node.js Skua needs, said by whatever starts it. Written so that a Node.js of long ago can read it.

/** The first version that has all that is used: threads whose processor time can be read. `engines` in package.json says the same. */
export const NODE_MIN = '24.6.0';

/** Whether this process runs under a Node.js that is new enough. */
export function isNewEnough() {
  const found = process.versions.node.split('.').map(Number);
  const wanted = NODE_MIN.split('.').map(Number);
  const at = wanted.findIndex((part, i) => part !== found[i]);
  return at < 0 || found[at] > wanted[at];
}

/** Tells which version is needed, which one this is, and how to get it; exit code 4, refused, which no service manager tries again. */
export function refuseNode(how) {
  console.error(`error node_too_old: Skua needs Node.js ${NODE_MIN} or later, and this is ${process.version} (${process.execPath}). ${how}`);
  process.exit(4);
}
