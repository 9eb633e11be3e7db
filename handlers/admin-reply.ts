import { TOMBSTONE } from '../core/log/records.ts';
import { corsHeaders } from './cors.ts';
import type { Call } from './context.ts';
import { jsonString } from './json-text.ts';
import { numberText } from './links.ts';
import type { Representation } from './negotiate.ts';

const REASONS: Readonly<Record<number, string>> = { 200: 'OK', 202: 'Accepted' };

/** 200 with a value as JSON, or the plain text that stands for it. */
export function adminReply(call: Call, chosen: Representation, value: unknown, text: string): Response {
  if (chosen.kind !== 'text') return adminJson(call, 200, value);
  return new Response(text, { status: 200, statusText: 'OK', headers: { ...corsHeaders(call.methods), 'content-type': chosen.contentType } });
}

/** A value as JSON, indented by two spaces. */
export function adminJson(call: Call, status: number, value: unknown): Response {
  return new Response(valueText(value, 0), { status, statusText: REASONS[status]!, headers: { ...corsHeaders(call.methods), 'content-type': 'application/json; charset=utf-8' } });
}

/** `JSON.stringify` knows no numbers beyond 2^53, and the number of a tombstone is 2^63-1. */
function valueText(value: unknown, depth: number): string {
  if (typeof value === 'string') return jsonString(value);
  if (value === TOMBSTONE) return numberText(TOMBSTONE);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const isArray = Array.isArray(value);
  const members = isArray ? value.map((each) => valueText(each, depth + 1))
    : Object.entries(value).filter(([, each]) => each !== undefined).map(([name, each]) => `${jsonString(name)}: ${valueText(each, depth + 1)}`);
  const [open, close] = isArray ? '[]' : '{}';
  const before = `\n${'  '.repeat(depth + 1)}`;
  return members.length === 0 ? `${open}${close}` : `${open}${before}${members.join(`,${before}`)}\n${'  '.repeat(depth)}${close}`;
}
