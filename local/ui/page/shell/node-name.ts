import { computed, signal } from '@preact/signals';

/** How the node calls itself, once a view has learned it; until then the address at which the page was found. */
const told = signal<string | null>(null);

export const nodeName = computed(() => told.value ?? location.host);

export function tellNodeName(name: string): void {
  told.value = name;
}
