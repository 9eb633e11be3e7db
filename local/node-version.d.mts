export const NODE_MIN: string;
export function isNewEnough(): boolean;
export function refuseNode(how: string): never;
