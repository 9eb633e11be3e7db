/** Where the deliveries of a connector are remembered. */
export function deliveriesStream(connectorId: string): string {
  return `$webhook-${connectorId}-deliveries`;
}

/** Where refused calls of a connector are noted. */
export function rejectionsStream(connectorId: string): string {
  return `$webhook-${connectorId}-rejections`;
}
