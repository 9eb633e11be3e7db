/** One value that a source gives for an option. */
export interface Given {
  /** The option's present name. */
  readonly name: string;
  /** The former name that was used; null for the present one. */
  readonly alias: string | null;
  /** How messages name it: `--node-port`, `SERVER_NODE_PORT`, `NodePort (/etc/skua/skua.conf:3)`. */
  readonly spelling: string;
  readonly text: string;
}

/** What one source of options says. */
export interface Reading {
  readonly given: readonly Given[];
  /** A message for each name that is no option's. */
  readonly unknown: readonly string[];
  /** Messages about what can't be understood. */
  readonly problems: readonly string[];
}

export const NOTHING: Reading = { given: [], unknown: [], problems: [] };
