import { OBJECT_LIST_MAX } from './object-store.ts';
import type { ListOptions, ObjectInfo, ObjectPage, ObjectStore } from './object-store.ts';

/**
 * Objects are listed kind by kind, by names that are ours: what else lies in a folder or a bucket (files of the system,
 * notes of an operator, copies with a name that is nearly one of ours) is a stranger's. Such an object is passed over,
 * logged once, and never removed.
 */
export interface KeyKind {
  readonly prefix: string;
  /** Matches all that follows the prefix. */
  readonly rest: RegExp;
}

export function isOfKind({ prefix, rest }: KeyKind, key: string): boolean {
  return key.startsWith(prefix) && rest.test(key.slice(prefix.length));
}

/** Called at the end of a listing that met strangers. */
export type OnStrangers = (strangers: Strangers) => void;

export interface Strangers {
  readonly place: string;
  readonly count: number;
  readonly first: string;
}

/**
 * Logs the first listing that met strangers, and none behind it: what is listed again and again would be logged as
 * often.
 */
export function logStrangersOnce(tell: (message: string) => void): OnStrangers {
  let isTold = false;
  return ({ place, count, first }) => {
    if (isTold) return;
    isTold = true;
    tell(
      `${count === 1 ? 'An object' : `${count} objects`} in ${place} ${count === 1 ? 'has a name' : 'have names'} unknown to this store (${first}${count === 1 ? '' : ' is the first'}): skipped, and left where ${count === 1 ? 'it is' : 'they are'}.`,
    );
  };
}

interface KindOptions extends ListOptions {
  /** A part of the kind: begins with its prefix. */
  readonly within?: string | undefined;
  readonly onStrangers?: OnStrangers | undefined;
}

/** Objects of a kind, page after page. */
export async function* listKind(
  objects: ObjectStore,
  kind: KeyKind,
  options: KindOptions = {},
): AsyncGenerator<ObjectInfo, void, undefined> {
  const { onStrangers, ...listing } = options;
  let { after } = options;
  let count = 0;
  let first = '';
  try {
    for (;;) {
      const page = await pageOfKind(objects, kind, { ...listing, ...(after !== undefined && { after }) });
      if (page.strangers.length > 0 && count === 0) first = page.strangers[0]!;
      count += page.strangers.length;
      yield* page.objects;
      if (!page.isMore) return;
      after = page.last;
    }
  } finally {
    if (count > 0) onStrangers?.({ place: objects.place, count, first });
  }
}

interface KindPage extends ObjectPage {
  /** The last key of the page, ours or a stranger's: the next page begins behind it. Empty where the page is. */
  readonly last: string;
  readonly strangers: readonly string[];
}

/** Objects of a kind, as one request gives them: fewer than `max` where strangers lie among them. */
export async function pageOfKind(
  objects: ObjectStore,
  kind: KeyKind,
  { within = kind.prefix, ...options }: Omit<KindOptions, 'onStrangers'> = {},
): Promise<KindPage> {
  const page = await objects.list(within, options);
  const strangers = page.objects.filter(({ key }) => !isOfKind(kind, key)).map(({ key }) => key);
  return {
    objects: strangers.length === 0 ? page.objects : page.objects.filter(({ key }) => isOfKind(kind, key)),
    isMore: page.isMore,
    last: page.objects.at(-1)?.key ?? '',
    strangers,
  };
}

/** The first object of a kind behind `after`: one request where no stranger lies before it. */
export async function firstOfKind(
  objects: ObjectStore,
  kind: KeyKind,
  options: Omit<KindOptions, 'max'> = {},
): Promise<ObjectInfo | null> {
  const { onStrangers: _, ...listing } = options;
  const page = await pageOfKind(objects, kind, { ...listing, max: 1 });
  if (page.objects.length > 0 || !page.isMore) return page.objects[0] ?? null;
  for await (const info of listKind(objects, kind, { ...options, max: OBJECT_LIST_MAX, after: page.last })) return info;
  return null;
}
