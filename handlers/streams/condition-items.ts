import type { AllFilter, ConditionItem } from '../../core/streams/api.ts';
import { SkuaError } from '../../core/base/errors.ts';

/** What a condition counts, as it stands in a request. */

/** Throws `bad_request`. Without items, or with one that asks for nothing, all events match. */
export function itemsOf(items: unknown): readonly ConditionItem[] {
  if (!Array.isArray(items)) throw badRequest('items must be an array');
  return (items as unknown[]).map((item) => {
    if (!isObject(item)) throw badRequest('an item must be an object with types or tags');
    const { types = [], tags = [] } = item;
    if (!isTexts(types) || !isTexts(tags)) throw badRequest('types and tags must be arrays of texts');
    return { types, tags };
  });
}

/** The filter of a read for decisions. */
export function filterForDecisions(items: readonly ConditionItem[]): AllFilter {
  const isAll = items.length === 0 || items.some(({ types = [], tags = [] }) => types.length + tags.length === 0);
  const anyOf = items.map(({ types = [], tags = [] }) => ({
    ...(types.length > 0 && { types }),
    ...(tags.length > 0 && { tags }),
  }));
  return { on: 'stream', forDecisions: true, ...(!isAll && { query: { anyOf } }) };
}

/** What a parameter has, as JSON; undefined without it. Throws `bad_request`. */
export function jsonIn(text: string | undefined, name: string): unknown {
  try {
    return text ? JSON.parse(text) : undefined;
  } catch {
    throw badRequest(`${name} must be JSON`);
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

export function badRequest(why: string): SkuaError {
  return new SkuaError('bad_request', `The request can't be read: ${why}.`);
}
