export const SURFACES: readonly string[];
export const PEERS: readonly string[];
export const ALIASES: Readonly<Record<string, string>>;
export function sourceOf(surface: string): string;
export function exportsOf(): Readonly<Record<string, unknown>>;
