import { SkuaError } from '../../base/errors.ts';
import type { Schedule } from '../../ports/schedule.ts';

/**
 * The text of a schedule. Exactly five fields (minute, hour, day of month, month, day of week) of digits, names, `*`,
 * `,`, `-` and `/`; 7 is Sunday. Everything else is refused before the library behind the port sees it.
 */

/** Longest text in UTF-16 code units; every value of every field listed takes less. */
const TEXT_LENGTH_MAX = 512;
/** Shortest abbreviation of a name. */
const NAME_LENGTH_MIN = 3;
const REFUSAL = 'Invalid CRON expression';

const MONTHS = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
];
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** The last value of `a/s`. */
  readonly last: number;
  /** The first has the value `min`. */
  readonly words: readonly string[];
}

const FIELDS: readonly Field[] = [
  { name: 'minute', min: 0, max: 59, last: 59, words: [] },
  { name: 'hour', min: 0, max: 23, last: 23, words: [] },
  { name: 'day of month', min: 1, max: 31, last: 31, words: [] },
  { name: 'month', min: 1, max: 12, last: 12, words: MONTHS },
  { name: 'day of week', min: 0, max: 7, last: 6, words: WEEKDAYS },
];

interface ScheduleText {
  /** As given, white space normalised: what is stored and shown. */
  readonly text: string;
  /** The same with digits for names: what `Schedule.next` takes. */
  readonly expression: string;
}

/** Parses a schedule and makes sure that it comes round. Errors: `invalid_schedule` (data: hint). */
export function parseSchedule(given: string, schedule: Schedule, afterMs: number, zone: string): ScheduleText {
  const parsed = parseScheduleText(given);
  if (schedule.next(parsed.expression, afterMs, zone) === null)
    throw refused(`There is no such day: '${parsed.text}' would never occur.`);
  return parsed;
}

/** The same without asking whether it comes round. Errors: `invalid_schedule` (data: hint). */
export function parseScheduleText(given: string): ScheduleText {
  if (given.length > TEXT_LENGTH_MAX) throw refused(`The expression is longer than ${TEXT_LENGTH_MAX} characters.`);
  const fields = given.trim().split(/\s+/);
  if (fields.length !== FIELDS.length)
    throw refused(
      `Give five fields: ${FIELDS.map((field) => field.name).join(', ')}. For example '30 2 * * 0', Sundays at 02:30.`,
    );
  return { text: fields.join(' '), expression: fields.map((text, i) => fieldOf(FIELDS[i]!, text)).join(' ') };
}

function fieldOf(field: Field, text: string): string {
  return text
    .split(',')
    .map((item) => itemOf(field, item))
    .join(',');
}

/** `*`, `a`, `a-b`, each with or without `/s`. */
function itemOf(field: Field, item: string): string {
  const match = /^(\*|[0-9A-Za-z]+)(?:-([0-9A-Za-z]+))?(?:\/(\d{1,2}))?$/.exec(item);
  if (match === null || (match[1] === '*' && match[2] !== undefined))
    throw refused(`'${item}' is not a valid ${field.name}: give digits, names, '*', ',', '-' and '/'.`);
  const [, first = '', second, stepText] = match;
  const step = stepText === undefined ? null : Number(stepText);
  if (step === 0) throw refused(`'${item}' has a step of 0: give 1 or more.`);
  const suffix = step === null ? '' : `/${step}`;
  if (first === '*') return `*${suffix}`;
  const from = valueOf(field, first);
  if (second === undefined) return step === null ? String(from) : `${from}-${Math.max(from, field.last)}${suffix}`;
  let to = valueOf(field, second);
  // A week may end with Sunday.
  if (field.words === WEEKDAYS && to === 0 && from > 0) to = 7;
  if (from > to) throw refused(`'${item}' is not a valid range for ${field.name}: its end is before its start.`);
  return `${from}-${to}${suffix}`;
}

function valueOf(field: Field, text: string): number {
  if (/^\d{1,2}$/.test(text)) {
    const value = Number(text);
    if (value >= field.min && value <= field.max) return value;
    throw refused(`'${text}' is not a valid ${field.name}: give ${field.min} to ${field.max}.`);
  }
  const word = text.toLowerCase();
  const at = word.length < NAME_LENGTH_MIN ? -1 : field.words.findIndex((name) => name.startsWith(word));
  if (at < 0)
    throw refused(
      `'${text}' is not a valid ${field.name}: give ${field.min} to ${field.max}${field.words.length > 0 ? ` or a name such as '${field.words[at + 1]!.slice(0, NAME_LENGTH_MIN)}'` : ''}.`,
    );
  return field.min + at;
}

function refused(hint: string): SkuaError {
  return new SkuaError('invalid_schedule', REFUSAL, { hint });
}
