/** A link to a route of the node. */
export interface LinkDocument {
  readonly href: string;
  readonly rel: string;
}
