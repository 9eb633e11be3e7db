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
  console.error(`error node_too_old: ${tooOld(min)} ${how}`);
  process.exit(4);
}

/** For a program that imports Skua: it gets an error with a code, as of all else that is wrong. */
export function checkNode() {
  if (isNewEnough()) return;
  const error = new Error(
    `${tooOld(NODE_MIN)} Install a newer Node.js, or \`npm install node@24\` here and run the program by \`npx node\`.`,
  );
  throw Object.assign(error, { name: 'SkuaError', code: 'node_too_old', data: { wanted: NODE_MIN } });
}

function tooOld(min) {
  return `Skua needs Node.js ${min} or later, and this is ${process.version} (${process.execPath}).`;
}
