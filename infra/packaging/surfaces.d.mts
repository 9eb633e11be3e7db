export const SURFACES: readonly string[];
export const NEUTRAL: readonly string[];
export const PEERS: readonly string[];
export const PEER_NAMES: Readonly<Record<string, string>>;
export const REQUIRED: readonly string[];
export function sourceOf(surface: string): string;
export function exportsOf(): Readonly<Record<string, unknown>>;
