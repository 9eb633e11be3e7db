export const NODE_MIN: string;
export const SOURCES_NODE_MIN: string;
export function isNewEnough(min?: string): boolean;
export function checkNode(): void;
export function refuseNode(how: string, min?: string): never;
