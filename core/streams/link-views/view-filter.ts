import { isAttribute } from '../../attributes/format/attribute-texts.ts';
import { type AllFilter, EVENT_TYPE_LENGTH_MAX } from '../api.ts';
import { VIEW_OF_CATEGORY, VIEW_OF_CORRELATION, VIEW_OF_TYPE } from '../format/names.ts';

/** Which events a view links to; null where its name stands for what no event can be. */
export function viewFilter(name: string): AllFilter | null {
  const text = name.slice(VIEW_OF_CATEGORY.length);
  if (text === '') return null;
  if (name.startsWith(VIEW_OF_TYPE))
    return text.length > EVENT_TYPE_LENGTH_MAX ? null : { on: 'type', query: { types: [text] } };
  if (name.startsWith(VIEW_OF_CORRELATION))
    return isAttribute(text) ? { on: 'stream', query: { correlation: text } } : null;
  // A name without a dash is a category of its own for queries, and has none here.
  return text.includes('-') ? null : { on: 'stream', prefixes: [`${text}-`], query: { category: text } };
}
