import type { Page } from 'playwright-core';

/** What pages of auto-scavenge have shown of cycles under way: one look for each change that a page has made. */

interface Look {
  /** Of the cycle. */
  readonly id: string;
  /** Addresses of the members, by what is said of them. */
  readonly waiting: readonly string[];
  readonly running: readonly string[];
  readonly done: readonly string[];
}

const WATCH = `
  window.__looks = [];
  const look = () => {
    const table = document.querySelector('table[aria-label="Members of the cycle that started"]');
    if (table === null) return;
    const rows = Array.from(table.querySelectorAll('tbody tr'), ({ cells: [member, state] }) => ({ member: member.textContent, state: state.textContent }));
    const those = (wanted) => rows.filter(({ state }) => state === wanted).map(({ member }) => member);
    const seen = { id: table.closest('.card').querySelector('p code').textContent, waiting: those('waiting'), running: those('scavenging'), done: those('done') };
    if (JSON.stringify(seen) !== JSON.stringify(window.__looks.at(-1))) window.__looks.push(seen);
  };
  new MutationObserver(look).observe(document.querySelector('main'), { subtree: true, childList: true, characterData: true });
`;

/** Begins to note what is shown; the page has to stay where it is. */
export async function watchCycles(page: Page): Promise<void> {
  await page.evaluate(WATCH);
}

/** All looks so far, of each page in their order. */
export async function looksAt(pages: readonly Page[]): Promise<readonly Look[]> {
  return (await Promise.all(pages.map((page) => page.evaluate('window.__looks') as Promise<Look[]>))).flat();
}

/**
 * The members of a cycle in the order in which they were seen being scavenged; empty where a look at one of them is
 * missing.
 */
export function orderOf(looks: readonly Look[], id: string, members: number): readonly string[] {
  const order = Array.from(
    { length: members },
    (_, before) =>
      looks.find((look) => look.id === id && look.done.length === before && look.running.length === 1)?.running[0],
  );
  return order.includes(undefined) ? [] : (order as string[]);
}
