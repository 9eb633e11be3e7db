/**
 * A schedule in plain words: `30 2 * * 0` is "at 02:30 on Sundays". Whether it is one at all, the node decides; null where the words would be wrong or
 * longer than the expression.
 */

const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
/** More times of a day than this are not listed one by one. */
const LISTED_MAX = 4;
/** As few letters of a name as the node takes. */
const NAME_LENGTH_MIN = 3;

/** One field: what it matches, ascending, and how it was written. */
interface Field {
  readonly values: readonly number[];
  readonly isAny: boolean;
  /** Of `*` with a step: every so many. */
  readonly every: number | null;
}

const SHAPES = [
  { min: 0, max: 59, names: [] }, { min: 0, max: 23, names: [] }, { min: 1, max: 31, names: [] }, { min: 1, max: 12, names: MONTHS }, { min: 0, max: 6, names: WEEKDAYS },
] as const;

export function cronWords(schedule: string): string | null {
  const parts = schedule.trim().split(/\s+/);
  if (parts.length !== SHAPES.length) return null;
  const fields = parts.map((part, i) => fieldOf(part, SHAPES[i]!));
  if (fields.some((field) => field === null)) return null;
  const [minute, hour, day, month, weekday] = fields as [Field, Field, Field, Field, Field];
  const when = timeWords(minute, hour);
  return when === null ? null : [when, dayWords(day, weekday), month.isAny ? '' : `in ${listed(month.values.map((value) => MONTHS[value - 1]!))}`].filter((words) => words !== '').join(' ');
}

function fieldOf(text: string, { min, max, names }: { readonly min: number; readonly max: number; readonly names: readonly string[] }): Field | null {
  const values = new Set<number>();
  let every: number | null = null;
  for (const item of text.split(',')) {
    const match = /^(\*|\w+)(?:-(\w+))?(?:\/(\d{1,2}))?$/.exec(item);
    if (match === null) return null;
    const [, first = '', second, stepText] = match;
    const step = stepText === undefined ? 1 : Number(stepText);
    const from = first === '*' ? min : valueOf(first, min, names);
    let to = first === '*' || (second === undefined && stepText !== undefined) ? max : second === undefined ? from : valueOf(second, min, names);
    if (from === null || to === null || step === 0) return null;
    // A week may end with Sunday.
    if (names === WEEKDAYS && to === 0 && from > 0) to = 7;
    if (from > to || to > (names === WEEKDAYS ? 7 : max) || from < min) return null;
    for (let value = from; value <= to; value += step) values.add(names === WEEKDAYS ? value % 7 : value);
    if (text === `*/${stepText}` && (max - min + 1) % step === 0) every = step;
  }
  const sorted = [...values].sort((one, other) => one - other);
  return { values: sorted, isAny: sorted.length === max - min + 1, every };
}

function valueOf(text: string, min: number, names: readonly string[]): number | null {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  const at = text.length < NAME_LENGTH_MIN ? -1 : names.findIndex((name) => name.toLowerCase().startsWith(text.toLowerCase()));
  return at < 0 ? null : min + at;
}

function timeWords(minute: Field, hour: Field): string | null {
  const [first] = minute.values;
  if (minute.isAny && hour.isAny) return 'every minute';
  if (hour.isAny) {
    if (minute.every !== null) return `every ${minute.every} minutes`;
    if (minute.values.length > 1) return `at the minutes ${listed(minute.values.map(String))} of every hour`;
    return first === 0 ? 'at every full hour' : `at minute ${first} of every hour`;
  }
  if (minute.values.length === 1 && hour.every !== null && hour.every > 1 && hour.values.length > LISTED_MAX) return `every ${hour.every} hours, at ${clock(0, first!)}, ${clock(hour.every, first!)} and so on`;
  if (minute.values.length * hour.values.length > LISTED_MAX) {
    if (minute.values.length !== 1) return null;
    const last = hour.values.at(-1)!;
    const isRun = last - hour.values[0]! === hour.values.length - 1;
    return isRun ? `at minute ${first} of each hour from ${clock(hour.values[0]!, first!)} to ${clock(last, first!)}` : `at ${listed(hour.values.map((value) => clock(value, first!)))}`;
  }
  return `at ${listed(hour.values.flatMap((value) => minute.values.map((of) => clock(value, of))))}`;
}

/** A day counts when either of both fields has it, if both are restricted. */
function dayWords(day: Field, weekday: Field): string {
  const days = day.every !== null && day.values.length > LISTED_MAX ? `every ${day.every} days of the month` : `on the ${listed(day.values.map(ordinal))} of the month`;
  const weekdays = weekdayWords(weekday.values);
  if (day.isAny) return weekday.isAny ? 'every day' : weekdays;
  return weekday.isAny ? days : `${days} and ${weekdays}`;
}

function weekdayWords(values: readonly number[]): string {
  if (values.join() === '1,2,3,4,5') return 'from Monday to Friday';
  if (values.join() === '0,6') return 'on Saturdays and Sundays';
  // A week begins with Monday for most who read this.
  const sorted = values.toSorted((one, other) => ((one + 6) % 7) - ((other + 6) % 7));
  return `on ${listed(sorted.map((value) => `${WEEKDAYS[value]!}s`))}`;
}

function clock(hour: number, minute: number): string {
  return `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`;
}

function ordinal(value: number): string {
  const ending = value % 100 >= 11 && value % 100 <= 13 ? 'th' : ['th', 'st', 'nd', 'rd'][value % 10] ?? 'th';
  return `${value}${ending}`;
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
