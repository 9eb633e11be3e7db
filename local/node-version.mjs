// What Node.js Skua needs, said by whatever starts it. Written so that a Node.js of long ago can read it.

/**
 * The first version that has all that is used: `node:sqlite` whose databases wait for each other (`timeout`). `engines`
 * in package.json says the same.
 */
export const NODE_MIN = '22.16.0';

/** The sources run as they stand from here on, and are tried with what is pinned. */
export const SOURCES_NODE_MIN = '24.6.0';

/** Whether this process runs under a Node.js that is new enough. */
export function isNewEnough(min = NODE_MIN) {
  const found = process.versions.node.split('.').map(Number);
  const wanted = min.split('.').map(Number);
  const at = wanted.findIndex((part, i) => part !== found[i]);
  return at < 0 || found[at] > wanted[at];
}

/**
 * Tells which version is needed, which one this is, and how to get it; exit code 4, refused, which no service manager
 * tries again.
 */
export function refuseNode(how, min = NODE_MIN) {
  console.error(
    `error node_too_old: Skua needs Node.js ${min} or later, and this is ${process.version} (${process.execPath}). ${how}`,
  );
  process.exit(4);
}
