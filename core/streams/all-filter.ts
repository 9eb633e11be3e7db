import type { AllFilter } from './api.ts';

/** True when the filter lets an event of this stream and type pass. A regular expression wins over prefixes. */
export function passesFilter(filter: AllFilter, stream: string, type: string): boolean {
  if (filter.excludeSystemEvents === true && type.startsWith('$')) return false;
  const text = filter.on === 'stream' ? stream : type;
  if (filter.regex !== undefined) {
    // A `g` or `y` expression remembers where it stopped; every event is a new text.
    filter.regex.lastIndex = 0;
    return filter.regex.test(text);
  }
  if (filter.prefixes === undefined) return true;
  for (const prefix of filter.prefixes) if (text.startsWith(prefix)) return true;
  return false;
}
